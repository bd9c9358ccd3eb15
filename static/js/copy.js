// <copy-button for="id">: copies the value of a field. Without script there is no button, and the field can be selected.

class CopyButton extends HTMLElement {
  connectedCallback() {
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.textContent = "Copy";
    this.said = document.createElement("span");
    this.said.setAttribute("role", "status");
    this.append(this.button, " ", this.said);
    this.button.addEventListener("click", () => this.copy());
  }

  async copy() {
    const field = document.getElementById(this.getAttribute("for"));
    field.focus();
    field.select();
    let done = false;
    try {
      await navigator.clipboard.writeText(field.value);
      done = true;
    } catch {
      done = document.execCommand("copy"); // the clipboard is for https and this machine only
    }
    this.said.textContent = done ? "Copied." : "Selected: copy it with the keyboard.";
  }
}

customElements.define("copy-button", CopyButton);

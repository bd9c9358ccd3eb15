// What comes next is fetched once the label is complete, so that it is there at once after the submit.

export class Ahead {
  constructor(session, form) {
    this.session = session;
    this.form = form;
    this.address = document.getElementById("lease")?.dataset.ahead; // none where nothing comes next
    form.addEventListener("missing", (event) => { if (event.detail.count === 0) this.fetch(); });
    if (this.address && !form.querySelector(".complete").hidden) this.fetch();
  }

  async fetch() {
    if (!this.address || this.asked) return;
    this.asked = true;
    try {
      const body = () => new URLSearchParams({ csrfmiddlewaretoken: this.form.elements.csrfmiddlewaretoken.value });
      const answer = await this.session.fetch(this.address, { body });
      if (!answer.ok) return;
      this.pictures = (await answer.json()).pictures.map((address) => {
        const picture = new Image();
        picture.fetchPriority = "low";
        picture.src = address;
        return picture;
      });
    } catch {
      this.asked = false; // offline: the next save tries again
    }
  }
}

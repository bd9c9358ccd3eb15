// Requests of a desk. When the session has ended, a bar offers to sign in again without leaving the page.

export const PATIENCE = 20_000; // milliseconds until a silent server counts as one that cannot be reached
const JSON_ONLY = { Accept: "application/json" };

export class SignedOut extends Error { name = "SignedOut"; }

export class Session {
  constructor(patience = PATIENCE) {
    this.patience = patience;
    this.bar = document.getElementById("session-ended");
    this.dialog = document.getElementById("signed-out");
    this.form = this.dialog.querySelector("form");
    this.person = Number(this.form.dataset.person);
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.signIn(); });
    this.dialog.querySelector("[data-later]").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.closed());
    // The focus stays in the field, so that it can return there after the dialog.
    this.bar.addEventListener("mousedown", (event) => event.preventDefault());
    this.bar.querySelector("button").addEventListener("click", () => this.open());
    // Who only reads tells of it by this event.
    document.addEventListener("signed-out", () => this.restored().catch(() => {}));
    // Perhaps it was done in another window.
    document.addEventListener("visibilitychange", () => { if (!this.bar.hidden && !document.hidden) this.restored().catch(() => {}); });
  }

  // Like fetch; `body` is a function, because a repeated request needs a new CSRF token. Throws SignedOut without a session.
  async fetch(address, { body, ...options }) {
    for (let again = true; ; again = false) {
      const answer = await this.post(address, body(), options);
      const ended = answer.redirected && this.isSignIn(answer.url);
      // A token is out of date (403) after signing in elsewhere, too; other refusals are the same the second time.
      if (!ended && (answer.status !== 403 || !again)) return answer;
      if (!again) throw new SignedOut();
      await this.restored();
    }
  }

  post(address, body, options = { headers: JSON_ONLY }) {
    return fetch(address, { headers: JSON_ONLY, ...options, method: "POST", body, signal: AbortSignal.timeout(this.patience) });
  }

  isSignIn(address) { return new URL(address).pathname === new URL(this.form.action).pathname; }

  // Renew the token if the same person is signed in, perhaps in another window. Otherwise show the bar and leave the focus.
  async restored() {
    const now = await this.look();
    if (now.person === this.person) return this.renew(now.csrf);
    this.other = now.person !== null;
    this.bar.hidden = false;
    throw new SignedOut();
  }

  async look() {
    const answer = await fetch(this.form.dataset.session, { headers: JSON_ONLY, signal: AbortSignal.timeout(this.patience) });
    return answer.json();
  }

  open() {
    this.back = document.activeElement;
    this.selection = [this.back.selectionStart, this.back.selectionEnd];
    this.say(this.other ? "Another person has signed in on this browser. Signing in here signs them out." : "");
    this.dialog.showModal();
    this.form.elements.password.focus();
  }

  async signIn() {
    const button = this.form.querySelector(".primary");
    button.disabled = true;
    try {
      this.say(await this.tryToSignIn());
    } catch {
      this.say("The server cannot be reached. Try again in a moment.");
    }
    button.disabled = false;
    this.form.elements.password.value = "";
    if (this.dialog.open) this.form.elements.password.focus();
  }

  // What stands in the way; empty when nothing does.
  async tryToSignIn() {
    let now = await this.look();
    if (now.person !== null && now.person !== this.person) {
      await this.post(this.form.dataset.signOut, new URLSearchParams({ csrfmiddlewaretoken: now.csrf }), {});
      now = await this.look();
    }
    if (now.person !== this.person) {
      const { username, password } = this.form.elements;
      const fields = { csrfmiddlewaretoken: now.csrf, username: username.value, password: password.value, next: this.form.dataset.session };
      const answer = await this.post(this.form.action, new URLSearchParams(fields), {});
      if (answer.status === 429) return this.lockedOut(answer);
      if (!answer.ok) return `The server rejected it (${answer.status}). Try again in a moment.`;
      if (this.isSignIn(answer.url)) return "Wrong password.";
      now = await answer.json();
    }
    if (now.person !== this.person) return "Another person signed in. Only the person who typed this text can continue here.";
    this.renew(now.csrf);
    return "";
  }

  lockedOut(answer) {
    const minutes = Math.ceil(Number(answer.headers.get("Retry-After")) / 60);
    return `Too many attempts.${minutes ? ` Try again in ${minutes} minutes.` : ""} Your text is saved.`;
  }

  renew(csrf) {
    document.querySelectorAll("[name=csrfmiddlewaretoken]").forEach((field) => { field.value = csrf; });
    if (this.bar.hidden) return;
    this.bar.hidden = true;
    this.dialog.close();
    document.dispatchEvent(new CustomEvent("signed-in"));
  }

  closed() {
    this.form.elements.password.value = "";
    const back = this.bar.contains(this.back) ? document.getElementById("main") : this.back;
    back.focus({ preventScroll: true });
    // Chromium returns the focus after a dialog without the cursor, so typed text would be lost.
    if (Number.isInteger(this.selection[0])) back.setSelectionRange(...this.selection);
  }

  say(text) { this.dialog.querySelector("[role=alert]").textContent = text; }
}

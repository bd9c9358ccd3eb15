// Requests that outlive the session: when it has ended, the person signs in again in place, and the request is repeated.

const PATIENCE = 20_000; // milliseconds until a silent server counts as one that cannot be reached

export class SignedOut extends Error {}

export class Session {
  constructor() {
    this.dialog = document.getElementById("signed-out");
    this.form = this.dialog.querySelector("form");
    this.person = Number(this.form.dataset.person);
    this.dismissed = 0; // when it was
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.signIn(); });
    this.dialog.querySelector("[data-later]").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.closed());
    // Who only reads tells of it by this event.
    document.addEventListener("signed-out", () => this.restored(true).catch(() => {}));
    // Perhaps it was done in another window.
    document.addEventListener("visibilitychange", () => { if (this.dialog.open && !document.hidden) this.restored().catch(() => {}); });
  }

  // As fetch; `body` is a function, since it is made anew with a fresh token. `asked`: the person waits for the answer.
  // Throws SignedOut when the person does not sign in.
  async fetch(address, { body, asked = false, ...options }) {
    for (let again = true; ; again = false) {
      const answer = await fetch(address, {
        ...options, method: "POST", body: body(), headers: { Accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE),
      });
      const ended = answer.redirected && this.isSignIn(answer.url);
      // A token is out of date (403) after signing in elsewhere, too; other refusals are the same the second time.
      if (!ended && (answer.status !== 403 || !again)) return answer;
      await this.restored(asked);
    }
  }

  isSignIn(address) { return new URL(address).pathname === new URL(this.form.action).pathname; }

  // Signed in as before, by now or at the end.
  async restored(asked = false) {
    const now = await this.look();
    if (now.person === this.person) return this.renew(now.csrf);
    if (this.dismissed && !asked) throw new SignedOut();
    this.waiting ??= new Promise((resolve, reject) => { this.open(now, resolve, reject); });
    return this.waiting;
  }

  async look() {
    const answer = await fetch(this.form.dataset.session, { headers: { Accept: "application/json" } });
    return answer.json();
  }

  open(now, resolve, reject) {
    Object.assign(this, { resolve, reject, back: document.activeElement });
    this.say(now.person === null ? "" : "Another person has signed in in this browser. Signing in here signs them out.");
    this.dialog.showModal();
    document.dispatchEvent(new CustomEvent("signing-in"));
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
      await this.post(this.form.dataset.signOut, { csrfmiddlewaretoken: now.csrf });
      now = await this.look();
    }
    if (now.person !== this.person) {
      const { username, password } = this.form.elements;
      const answer = await this.post(this.form.action, {
        csrfmiddlewaretoken: now.csrf, username: username.value, password: password.value, next: this.form.dataset.session,
      });
      if (answer.status === 429) return this.lockedOut(answer);
      if (!answer.ok) return `The server has refused it (${answer.status}). Try again in a moment.`;
      if (this.isSignIn(answer.url)) return "The password is not right.";
      now = await answer.json();
    }
    if (now.person !== this.person) return "Another person was signed in. Only who typed this can go on here.";
    this.renew(now.csrf);
    return "";
  }

  post(address, fields) { return fetch(address, { method: "POST", body: new URLSearchParams(fields) }); }

  lockedOut(answer) {
    const minutes = Math.ceil(Number(answer.headers.get("Retry-After")) / 60);
    return `Too many attempts.${minutes ? ` Try again in ${minutes} minutes.` : ""} What you typed is kept.`;
  }

  renew(csrf) {
    document.querySelectorAll("[name=csrfmiddlewaretoken]").forEach((field) => { field.value = csrf; });
    this.dismissed = 0;
    const resolve = this.resolve;
    this.resolve = null;
    if (!resolve) return;
    this.waiting = null;
    this.dialog.close();
    resolve();
    document.dispatchEvent(new CustomEvent("signed-in"));
  }

  closed() {
    this.form.elements.password.value = "";
    this.back?.focus?.({ preventScroll: true });
    if (!this.resolve) return;
    this.resolve = null;
    this.waiting = null;
    this.dismissed = performance.now();
    this.reject(new SignedOut());
  }

  say(text) { this.dialog.querySelector("[role=alert]").textContent = text; }
}

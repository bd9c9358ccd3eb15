// <form data-passkey="create" or "get" data-options="JSON">: lets the browser create or use a passkey, then submits it.

const steps = {
  create: (options) =>
    navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
  get: (options) => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = form.querySelector("[role=status]");
    told.textContent = "";
    try {
      const credential = await steps[form.dataset.passkey](JSON.parse(form.dataset.options));
      form.elements.credential.value = JSON.stringify(credential.toJSON());
    } catch (error) {
      const refused = error instanceof DOMException;
      told.textContent = refused
        ? "The browser returned no passkey. Try again, or use another factor."
        : "This browser cannot use passkeys here. Use another factor.";
      return;
    }
    form.submit();
  });
}

// usage: node check_phone.mjs PHONE VECTORS: each vector opens as PHONE's functions open it, or is refused for its reason.
// The number of those that did is printed; exit status 3 when one does not.
import { createECDH, createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const { message, proof, Refused } = await import(process.argv[2]);
const { vectors } = JSON.parse(readFileSync(process.argv[3]));
const bytes = (text) => Buffer.from(text, "base64url");
let done = 0;
for (const vector of vectors) {
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(bytes(vector.private_key));
  const origin = bytes(vector.origin_key);
  const me = {
    app: vector.app, device: vector.device,
    keys: new Map([[vector.kid, { ecdh, publicKey: bytes(vector.public_key) }]]),
    origins: new Map([[createHash("sha256").update(origin).digest("hex").slice(0, 16), origin]]),
  };
  let found;
  try {
    found = vector.purpose === "challenge"
      ? { proof: proof(vector.envelope, me, vector.now) }
      : { content: message(vector.envelope, me, vector.now).toString("base64url") };
  } catch (error) {
    found = { refused: error instanceof Refused ? error.reason : String(error) };
  }
  const [name, value] = Object.entries(found)[0];
  if (vector[name] === value) done += 1;
  else console.error(`${vector.name}: ${name} ${value}`);
}
console.log(done);
process.exit(done === vectors.length ? 0 : 3);

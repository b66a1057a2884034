// Sends through the handbook's Node client; see check_clients.py, which starts it beside the client's file.

import readline from "node:readline";
import { SendgateClient, SendgateError } from "./sendgate_client.mjs";

const clients = new Map();

async function ask(client, send) {
  try {
    const answer = await client.send(send);
    return { id: answer.id, send_id: answer.sendID, outcome: answer.outcome, reason: answer.reason, detail: answer.detail ?? "",
      who_can_fix: answer.whoCanFix, violations: answer.violations, is_promised: answer.isPromised,
      is_replayed: answer.isReplayed, text: String(answer), document: answer.document };
  } catch (error) {
    if (!(error instanceof SendgateError)) throw error;
    return { error: error.name, status: error.status ?? 0, violations: error.violations, retry_after: error.retryAfterSeconds,
      text: error.message };
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { socket, timeout, deadline, at_once: atOnce, sends } = JSON.parse(line);
  const key = JSON.stringify([socket, timeout, deadline]);
  if (!clients.has(key)) {
    clients.set(key, new SendgateClient(socket, { timeoutSeconds: timeout, deadlineSeconds: deadline }));
  }
  const begin = performance.now();
  const results = [];
  let next = 0;
  const one = async () => {
    while (next < sends.length) {
      const index = next++;
      results[index] = await ask(clients.get(key), sends[index]);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  console.log(JSON.stringify({ results, seconds: (performance.now() - begin) / 1000 }));
}

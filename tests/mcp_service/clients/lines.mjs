// Answers each line of JSON on stdin, {"action": …}, with one on stdout: {"result": …} or {"thrown": …}.
import { createInterface } from 'node:readline';

export async function answerLines(actions) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { action, ...given } = JSON.parse(line);
    let answer;
    try {
      answer = { result: (await actions[action](given)) ?? null };
    } catch (error) {
      answer = { thrown: String(error.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

// Values that come later than they are asked for, or earlier.
export class Inbox {
  #kept = [];
  #waiting = [];

  put(value) {
    const wake = this.#waiting.shift();
    if (wake) wake(value);
    else this.#kept.push(value);
  }

  take() {
    if (this.#kept.length) return Promise.resolve(this.#kept.shift());
    return new Promise((wake) => this.#waiting.push(wake));
  }
}

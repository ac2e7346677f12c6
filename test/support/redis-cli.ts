/** What an operator would type: redis-cli, against servers on loopback. */
import { execFile } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The answer of one command, as redis-cli prints it. */
export async function redisCli (port: number, ...words: string[]): Promise<string> {
  return (await run('redis-cli', ['-p', String(port), ...words], { timeout: 60_000 })).stdout.trim()
}

/** Asks until the answer is yes. @throws after `withinMs` */
export async function until (what: string, holds: () => Promise<boolean> | boolean, withinMs = 60_000): Promise<void> {
  const giveUp = performance.now() + withinMs
  while (!await Promise.resolve().then(holds).catch(() => false)) {
    if (performance.now() > giveUp) throw new Error(`not within ${withinMs} ms: ${what}`)
    await wait(20)
  }
}

/** What an operator would type: redis-cli, against servers on loopback. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The answer of one command, as redis-cli prints it. */
export async function redisCli(port: number, ...words: string[]): Promise<string> {
  return (await run('redis-cli', ['-p', String(port), ...words], { timeout: 60_000 })).stdout.trim()
}

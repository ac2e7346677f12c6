/** A gateway that is restarted: its processes share their output, and all of them are ended. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { resolve } from 'node:path'
import { callOnce, opsSecret, type PlainAnswer } from './gateway-process.ts'
import { until } from './until.ts'

type Line = Readonly<Record<string, any>>

export interface Restartable {
  readonly url: string
  readonly opsUrl: string
  readonly pid: number
  /** Log lines of all processes so far. */
  readonly log: readonly Line[]
  /** Output that is no log line. */
  readonly texts: readonly string[]
  /** Waits for a log line that fits. */
  readonly logged: (what: string, fits: (line: Line) => boolean) => Promise<Line>
  readonly ask: (path: string, json?: object) => Promise<PlainAnswer>
  /** By the operators' listener. */
  readonly restart: () => Promise<Line>
  /** The process that answers at the operators' listener. */
  readonly serving: () => Promise<number>
}

export interface RestartableOptions {
  readonly folder: string
  /** The program, whose path may be a symbolic link. */
  readonly program?: string
  readonly words?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export async function startRestartable(
  cleanUp: (undo: () => unknown) => void,
  { folder, program = 'src/launch.js', words = [], environment = {} }: RestartableOptions
): Promise<Restartable> {
  const log: Line[] = []
  const texts: string[] = []
  const child = spawn(process.execPath, [resolve(program), 'start', '--config', folder, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      NODE_COMPILE_CACHE: 'node_modules/.cache/compiled',
      ...environment
    }
  })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => {
      try {
        log.push(JSON.parse(line))
      } catch {
        texts.push(line)
      }
    })
  }
  const pid = child.pid ?? 0
  const pids = new Set([pid])
  cleanUp(async () => {
    for (const { successor } of log) if (successor !== undefined) pids.add(successor)
    for (const each of pids) if (isAlive(each)) process.kill(each, 'SIGKILL')
    await until('all processes have ended', () => ![...pids].some(isAlive))
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
  })
  const logged = async (what: string, fits: (line: Line) => boolean) => {
    await until(what, () => log.some(fits) || child.exitCode !== null)
    const found = log.find(fits)
    if (found === undefined) throw new Error(`${what}: never\n${texts.join('\n')}`)
    return found
  }
  const { url, ops } = await logged('the gateway listens', ({ ops }) => ops !== undefined)
  const ask = async (path: string, json?: object) =>
    await callOnce(`${ops}${path}`, {
      headers: { authorization: `Bearer ${opsSecret}` },
      timeoutMs: 120_000,
      ...(json !== undefined && { json })
    })
  return {
    url,
    opsUrl: ops,
    pid,
    log,
    texts,
    logged,
    ask,
    restart: async () => {
      const outcome = JSON.parse((await ask('/ops/api/restart', {})).body)
      if (outcome.pid !== undefined) pids.add(outcome.pid)
      return outcome
    },
    serving: async () => JSON.parse((await ask('/ops/api/status')).body).pid
  }
}

/** promtool, and a Prometheus server of its own for a test: real ones, from Debian's package. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from './ports.ts'
import { until } from './until.ts'

/** @returns the exit code, and what promtool wrote */
export function promtool(words: readonly string[], input = '') {
  const { status, stdout, stderr, error } = spawnSync('promtool', words, {
    input,
    encoding: 'utf8'
  })
  if (error !== undefined) throw error
  return { status, text: stdout + stderr }
}

/** A series of the answer to a query. */
interface PromSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

interface Target {
  readonly health: string
  readonly lastError: string
}

/** Scrapes one target each second, with the `Accept` header that Prometheus sends by itself. */
export async function testPrometheus(cleanUp: (undo: () => unknown) => void, target: string) {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const config = join(folder, 'prometheus.yml')
  const jobs = [{ job_name: 'gateway', static_configs: [{ targets: [target] }] }]
  const timing = { scrape_interval: '1s', scrape_timeout: '1s' }
  writeFileSync(config, stringify({ global: timing, scrape_configs: jobs }))
  const address = `127.0.0.1:${await freePort()}`
  const server: ChildProcess = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error'
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] }
  )
  cleanUp(async () => {
    const ended = once(server, 'exit')
    server.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })

  async function ask<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
    const query = new URLSearchParams(parameters).toString()
    const response = await fetch(`http://${address}/api/v1/${path}?${query}`)
    const { data, error } = (await response.json()) as { data: T; error?: string }
    if (error !== undefined) throw new Error(error)
    return data
  }
  await until('Prometheus answers', async () => (await fetch(`http://${address}/-/ready`)).ok)

  return {
    target: async (): Promise<Target | undefined> =>
      (await ask<{ activeTargets: Target[] }>('targets')).activeTargets[0],
    query: async (query: string): Promise<PromSeries[]> =>
      (await ask<{ result: PromSeries[] }>('query', { query })).result
  }
}

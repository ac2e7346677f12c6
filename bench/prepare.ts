/** What has to be there before anything is measured: the gateway as it is published, and the peers, which are no dependencies of it. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

const here = import.meta.dirname
export const root = join(here, '..')

export function prepare(): void {
  const installed = join(here, 'node_modules/.package-lock.json')
  if (
    !existsSync(installed) ||
    statSync(installed).mtimeMs < statSync(join(here, 'package-lock.json')).mtimeMs
  ) {
    run('npm', ['ci', '--no-audit', '--no-fund'], here)
  }
  build(root)
}

export function build(folder: string): void {
  run('npm', ['run', '-s', 'build'], folder)
}

function run(program: string, given: readonly string[], cwd: string): void {
  const { status } = spawnSync(program, given, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${program} ${given.join(' ')} failed`)
}

/** `npm run test:long`: all quarters, one, or files; what fails in a quarter is run once more. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'

interface Quarter {
  readonly name: string
  readonly needs: readonly string[]
  readonly files: readonly string[]
}

const usage = `npm run test:long -- [--quarter 1-4 | FILE…] [--list]

  --quarter   a part of about a quarter of the time; a file of it that fails gets a second run
  --list      only prints the files
`
const failures = 'node_modules/.cache/test-long-failures'

function node(...args: readonly string[]): boolean {
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status === 0
}

function tap(files: readonly string[]): boolean {
  return node(
    'node_modules/tap/dist/esm/run.mjs',
    'run',
    '--jobs=1',
    '--timeout=600',
    `--save=${failures}`,
    ...files
  )
}

/** Runs what failed once more, and says both outcomes. */
function again(): boolean {
  const failed = existsSync(failures) ? readFileSync(failures, 'utf8').trim().split('\n') : []
  const outcomes = failed.map(file => {
    rmSync(failures, { force: true })
    process.stdout.write(`\n${file} failed: its second run\n`)
    return { file, ok: tap([file]) }
  })
  for (const { file, ok } of outcomes) {
    process.stdout.write(`${file}: first run failed, second run ${ok ? 'passed' : 'failed'}\n`)
  }
  return failed.length > 0 && outcomes.every(({ ok }) => ok)
}

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quarter: { type: 'string' }, list: { type: 'boolean', default: false } }
  })
  const quarters = parse(readFileSync('test/long/quarters.yaml', 'utf8')) as Quarter[]
  const number = Number(values.quarter ?? 0)
  const chosen = values.quarter === undefined ? quarters : quarters.slice(number - 1, number)
  if (chosen.length === 0) {
    process.stderr.write(usage)
    return 2
  }
  const files = positionals.length > 0 ? positionals : chosen.flatMap(({ files }) => files)
  if (values.list) {
    process.stdout.write(`${files.join('\n')}\n`)
    return 0
  }
  process.stdout.write(`test:long: ${chosen.map(({ name }) => name).join(', ')}\n`)
  const needs = new Set(chosen.flatMap(({ needs }) => needs))
  if (!node('test/support/provide.ts', ...needs)) return 1
  rmSync(failures, { force: true })
  const passed = tap(files)
  return passed || (values.quarter !== undefined && again()) ? 0 : 1
}

process.exitCode = main()

/**
 * `npm run test:mutants`: puts one fault after another into a copy of the checkout, and ends with 1
 * where a test does not see it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { adopt } from '../../src/observability/emitters.ts'
import { endOnSignals } from '../support/signals.ts'
import { type Change, type Mutant, mutants } from './mutants.ts'

const usage = `npm run test:mutants -- [--only PATTERN]

  --only   mutants whose file, tests or description hold this regular expression
`

interface Outcome {
  readonly passed: boolean
  /** The first test that failed; undefined where the file ended before any could. */
  readonly failed: string | undefined
  readonly seconds: number
}

const root = join(import.meta.dirname, '../..')
const maxSeconds = 240
const cleanUpSeconds = 10
/** Of a test file's output, enough to find the first failure. */
const maxOutput = 10_000_000

/** What was just killed may still be closing its files. */
const removal = { recursive: true, force: true, maxRetries: 10 }

const undo: Array<() => void> = []
const cleanUp = () => {
  for (const step of undo.splice(0).toReversed()) step()
}

const write = (line: string) => {
  process.stdout.write(`${line}\n`)
}

/** What git knows of the checkout, as it stands now, with the packages that are installed there. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'console-gateway-mutants-'))
  undo.push(() => rmSync(copy, removal))
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const listed = spawnSync('git', list, { cwd: root, encoding: 'utf8', maxBuffer: maxOutput })
  if (listed.status !== 0) throw new Error(`git ls-files failed: ${listed.stderr}`)
  for (const file of listed.stdout.split('\0')) {
    const from = join(root, file)
    if (file !== '' && existsSync(from)) cpSync(from, join(copy, file))
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

const changesOf = (mutant: Mutant): Change[] =>
  mutant.also === undefined ? [mutant] : [mutant, mutant.also]

/** @returns the file's text with the fault in it */
function mutated(checkout: string, { file, find, replacement }: Change): string {
  const parts = readFileSync(join(checkout, file), 'utf8').split(find)
  if (parts.length === 2) return parts.join(replacement)
  const times = parts.length - 1
  throw new Error(`the mutant does not fit any more: ${file} has ${times} times: ${find}`)
}

const failure = /^not ok \d+ - (.*?)(?: # time=.*)?\n/m

/**
 * Runs a test file in a process group of its own, of which nothing is left afterwards. After its
 * first failure it has a moment to clean up; other tests may fail only by waiting in vain.
 */
async function runTest(copy: string, test: string): Promise<Outcome> {
  const begun = performance.now()
  const child = adopt(
    spawn(process.execPath, [test], {
      cwd: copy,
      env: { ...process.env, TAP_TIMEOUT: String(maxSeconds) },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true
    })
  )
  const end = () => {
    endGroup(child.pid)
  }
  undo.push(end)
  let output = ''
  let isFailed = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < maxOutput) output += text
    if (isFailed || !failure.test(output)) return
    isFailed = true
    clearTimeout(timer)
    timer = setTimeout(end, cleanUpSeconds * 1000)
  })
  let timer = setTimeout(end, maxSeconds * 1000)
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  end()
  // Only now all of its output is here.
  await closed
  clearTimeout(timer)
  undo.splice(undo.indexOf(end), 1)
  const seconds = Math.round((performance.now() - begun) / 100) / 10
  const [, failed] = failure.exec(output) ?? []
  return { passed: code === 0, failed, seconds }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // Nothing of it is left.
  }
}

/** @returns the tests that fail without any mutant: they can judge none */
async function brokenTests(copy: string, chosen: readonly Mutant[]): Promise<string[]> {
  const broken: string[] = []
  for (const test of new Set(chosen.flatMap(({ tests }) => tests))) {
    const { passed, failed, seconds } = await runTest(copy, test)
    if (passed) {
      write(`sound    ${test} (${seconds} s)`)
    } else {
      write(`BROKEN   ${test} (${seconds} s): ${failed ?? 'it does not run'}`)
      broken.push(test)
    }
  }
  return broken
}

/** @returns whether all of its tests failed */
async function isKilled(copy: string, mutant: Mutant): Promise<boolean> {
  const changes = changesOf(mutant)
  const before = changes.map(({ file }) => {
    const path = join(copy, file)
    return [path, readFileSync(path, 'utf8')] as const
  })
  for (const change of changes) writeFileSync(join(copy, change.file), mutated(copy, change))
  write(`\n${mutant.file}: ${mutant.breaks}`)
  let survived = 0
  for (const test of mutant.tests) {
    const { passed, failed, seconds } = await runTest(copy, test)
    // A file that does not even run judges nothing: the mutant may be no sound program.
    if (passed || failed === undefined) {
      write(`SURVIVED ${test} (${seconds} s)${passed ? '' : ': it does not run'}`)
      survived++
    } else {
      write(`killed   ${test} (${seconds} s): ${failed}`)
    }
  }
  for (const [path, text] of before) writeFileSync(path, text)
  return survived === 0
}

async function run(only: RegExp): Promise<number> {
  const chosen = mutants.filter(({ breaks, file, tests }) => {
    return only.test([file, ...tests, breaks].join('\n'))
  })
  // All that no longer fit are told before any test runs.
  for (const change of chosen.flatMap(changesOf)) mutated(root, change)
  const copy = copyCheckout()
  write(`mutants: ${chosen.length}, in ${copy}; first their tests without any`)
  const broken = await brokenTests(copy, chosen)
  if (broken.length > 0) {
    write(`mutants: ${broken.length} test files fail without any mutant`)
    return 1
  }
  let survivors = 0
  for (const mutant of chosen) if (!(await isKilled(copy, mutant))) survivors++
  write(`\nmutants: ${chosen.length - survivors} of ${chosen.length} killed`)
  return survivors > 0 || chosen.length === 0 ? 1 : 0
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      help: { type: 'boolean', short: 'h', default: false }
    }
  })
  if (values.help) {
    write(usage)
    return 0
  }
  endOnSignals(async () => {
    cleanUp()
  })
  try {
    return await run(new RegExp(values.only))
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  } finally {
    cleanUp()
  }
}

process.exitCode = await main()

/** `check`: reports all faults of a config folder, without starting. */
import { ConfigError, describeFault, type Fault } from '../config/schema/faults.ts'
import { loadConfig } from '../config/read/load.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { type Reached, reachAll } from '../services/reach.ts'
import type { Invocation, Output } from './command.ts'
import { printableLines } from '../observability/unprintable.ts'
import { jsonText, paint, printText } from './output.ts'

interface Values {
  readonly strict?: boolean
  readonly live?: boolean
  /** False by `--no-code`. */
  readonly code?: boolean
}

export async function check({
  config: folder,
  values: { strict = false, live = false, code: takesCode = true },
  json,
  io
}: Invocation<Values>): Promise<number> {
  const printJson = (faults: readonly Fault[], warnings: readonly Fault[], reached?: Reached[]) => {
    const report = {
      folder,
      faults: faults.map(toJson),
      warnings: warnings.map(toJson),
      ...(reached && { live: reached })
    }
    io.stdout.write(jsonText(report))
  }
  try {
    const config = loadConfig(folder, io.env)
    const { warnings } = config
    if (takesCode) await assertUsable(config)
    const reached = live ? await reachAll(config) : undefined
    const isDown = reached?.some(({ fault }) => fault !== undefined) === true
    const isStrict = strict && warnings.length > 0
    const warned = isStrict ? 3 : 0
    const exitCode = isDown ? 1 : warned
    if (json) {
      printJson([], warnings, reached)
      return exitCode
    }
    for (const warning of warnings) io.stdout.write(`${coloured(warning, io.stdout)}\n`)
    io.stdout.write(
      `${folder}: no faults${warnings.length > 0 ? `, ${warnings.length} warning${warnings.length > 1 ? 's' : ''}` : ''}\n`
    )
    const own = Object.keys(config.modules)
    if (own.length > 0) io.stdout.write(noteOf(own, !takesCode))
    for (const each of reached ?? []) printText(formatReached(each), io)
    return exitCode
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (json) {
      printJson(
        error.faults.filter(({ severity }) => severity === 'fault'),
        error.faults.filter(({ severity }) => severity === 'warning')
      )
      return 1
    }
    for (const fault of error.faults) io.stderr.write(`${coloured(fault, io.stderr)}\n`)
    const faults = error.faults.filter(({ severity }) => severity === 'fault').length
    io.stderr.write(`${folder}: ${faults} fault${faults > 1 ? 's' : ''}\n`)
    return 1
  }
}

/** The one risk of own code that no check finds. */
function noteOf(files: readonly string[], isLeftOut: boolean): string {
  return isLeftOut
    ? `own code: ${files.join(', ')}: not loaded, and no expectation tried (--no-code)\n`
    : `own code: ${files.join(', ')}: loaded; a loop without an end in it would stop the gateway\n`
}

function formatReached({ what, address, fault, advice }: Reached): string {
  const reached = advice === undefined ? 'ok' : `ok (${advice})`
  const state = fault === undefined ? reached : `cannot be reached (${fault})`
  return `${what}: ${address}: ${state}`
}

function toJson({ file, line, path, message }: Fault): object {
  return { file, line, path, message }
}

/** Red for faults; yellow for warnings, which do not prevent a start. */
function coloured(fault: Fault, stream: Output) {
  return paint(
    fault.severity === 'fault' ? 'red' : 'yellow',
    printableLines(describeFault(fault)),
    stream
  )
}

import { loadConfig } from '../config/read/load.ts'
import { ConfigError, describeFault, type Fault } from '../config/schema/faults.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { type Reached, reachAll } from '../services/reach.ts'
import type { Invocation, Output } from './command.ts'
import { paint } from './output.ts'

interface Values {
  readonly strict?: boolean
  readonly live?: boolean
  readonly user?: string
  /** False by `--no-code`. */
  readonly code?: boolean
}

const counted = ({ length }: readonly unknown[], word: string) =>
  `${length} ${word}${length > 1 ? 's' : ''}`

export async function check(invocation: Invocation<Values>) {
  const { config: folder, values, io } = invocation
  const { found, live } = await resultOf(invocation)
  const of = (wanted: Fault['severity']) =>
    found.flatMap(({ severity, ...fault }) => (severity === wanted ? [fault] : []))
  const [faults, warnings] = [of('fault'), of('warning')]
  const isRefusal = faults.length > 0
  const stream = isRefusal ? io.stderr : io.stdout
  const summary = isRefusal ? counted(faults, 'fault') : 'no faults'
  const more = warnings.length > 0 && !isRefusal ? `, ${counted(warnings, 'warning')}` : ''
  const lines = [
    ...found.map(each => coloured(each, stream)),
    `${folder}: ${summary}${more}`,
    ...(live ?? []).map(reachedText)
  ]
  const isDown = live?.some(({ fault }) => fault !== undefined) === true
  const strict = values.strict === true && warnings.length > 0 ? 3 : 0
  return {
    json: { folder, faults, warnings, live },
    painted: `${lines.join('\n')}\n`,
    isRefusal,
    code: isRefusal || isDown ? 1 : strict
  }
}

async function resultOf({ configs, values, io }: Invocation<Values>) {
  try {
    const config = loadConfig(configs, io.env)
    if (values.code !== false) await assertUsable(config)
    return {
      found: config.warnings,
      live: values.live === true ? await reachAll(config, values.user) : undefined
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { found: error.faults }
  }
}

function coloured(fault: Fault, stream: Output): string {
  const colour = fault.severity === 'fault' ? 'red' : 'yellow'
  return paint(colour, printableLines(describeFault(fault)), stream)
}

function reachedText({ what, address, fault, advice }: Reached): string {
  const reached = advice === undefined ? 'ok' : `ok (${advice})`
  const state = fault === undefined ? reached : `cannot be reached (${fault})`
  return printable(`${what}: ${address}: ${state}`)
}

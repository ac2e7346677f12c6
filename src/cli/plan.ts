import { loadConfig } from '../config/read/load.ts'
import { comparePlan, type Plan } from '../config/risks.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { printable } from '../observability/unprintable.ts'
import type { PlanAnswer } from '../ops/state-schemas.ts'
import { ask } from './ask.ts'
import { CommandError, type Connection, type Invocation, type Output } from './command.ts'
import { jsonText, paint } from './output.ts'

export async function plan({
  configs,
  gateway,
  rest: [target],
  json,
  io
}: Invocation): Promise<number> {
  let found: Plan
  if (target === undefined) {
    found = await planOfRunning(gateway)
  } else {
    const next = loadConfig(target, io.env)
    await assertUsable(next)
    found = comparePlan(loadConfig(configs, io.env), next)
  }
  const { changes, risks } = found
  io.stdout.write(json ? jsonText({ changes, risks }) : planText(found, io.stdout))
  return risks.length > 0 ? 3 : 0
}

async function planOfRunning(gateway: Connection | undefined): Promise<Plan> {
  const { faults, ...found } = await ask<PlanAnswer>(gateway, '/ops/api/plan')
  if (faults.length > 0) throw new CommandError(faults.join('\n'))
  return found
}

function planText({ changes, risks }: Plan, stream: Output): string {
  if (changes.length === 0) return 'Nothing would change.\n'
  const section = (title: string, restart: boolean) => {
    const lines = changes
      .filter(each => each.restart === restart)
      .map(({ file, text }) => (file === 'users' ? text : `${file}.yaml ${text}`))
    return lines.length === 0 ? [] : [`${title}:`, ...lines.map(line => `  ${printable(line)}`)]
  }
  return [
    ...section('Live, at the next reload', false),
    ...section('Only after a restart', true),
    '',
    risks.length === 0 ? 'No risks found.' : 'Risks:',
    ...risks.map(risk => `  ${paint('red', '!', stream)} ${printable(risk)}`),
    ''
  ].join('\n')
}

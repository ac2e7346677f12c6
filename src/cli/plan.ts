import { loadConfig } from '../config/read/load.ts'
import { comparePlan, type Plan } from '../config/risks.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { printable } from '../observability/unprintable.ts'
import type { PlanAnswer } from '../ops/state-schemas.ts'
import { ask } from './ask.ts'
import { CommandError, type Invocation, type Output } from './command.ts'
import { paint } from './output.ts'

export async function plan(invocation: Invocation) {
  const json = await planOf(invocation)
  const painted = planText(json, invocation.io.stdout)
  return { json, painted, code: json.risks.length > 0 ? 3 : 0 }
}

async function planOf({ configs, gateway, rest: [target], io }: Invocation): Promise<Plan> {
  if (target === undefined) {
    const { faults, ...found } = await ask<PlanAnswer>(gateway, '/plan')
    if (faults.length > 0) throw new CommandError(faults.join('\n'))
    return found
  }
  const next = loadConfig(target, io.env)
  await assertUsable(next)
  return comparePlan(loadConfig(configs, io.env), next)
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

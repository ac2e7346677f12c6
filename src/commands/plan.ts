/** `plan`: what another config folder would change, in words, and which of it is a risk. */
import { loadConfig } from '../config/load.ts'
import { differences } from '../config/differences.ts'
import { inUnits, toMilliseconds } from '../config/primitives.ts'
import { type Command, UsageError } from './command.ts'
import { paint } from './paint.ts'
import { risksOf } from './risks.ts'

export const plan: Command = {
  summary: 'say what a new config folder would change, and which of it is a risk',
  usage: ['NEW_DIR [--config DIR] [--balancer 60s] [--json]'],
  details: `
Compares the config folder (--config) with NEW_DIR; nothing is changed. Both are
checked first. Changes to gateway.yaml need a restart; all others are live.

Examples:
  console-gateway plan /etc/console-gateway.next -c /etc/console-gateway --balancer 30s
Exit codes: 0 nothing risky, 3 there are risks.`,
  options: { balancer: { type: 'string', value: 'TIME', description: 'how long the load balancer before the gateway waits for an answer (default: 60s)' } },
  run: async ({ config: folder, rest: [target, ...more], values: { balancer = '60s' }, json }) => {
    if (target === undefined || more.length > 0) throw new UsageError('Name the folder of the new config.')
    const balancerMs = toMilliseconds(String(balancer))
    if (!Number.isFinite(balancerMs)) throw new UsageError('--balancer is a duration such as 60s.')
    const [before, after] = [loadConfig(folder, process.env), loadConfig(target, process.env)]
    const changes = differences(before, after)
    const risks = risksOf(before, after, balancerMs)
    if (json) {
      process.stdout.write(`${JSON.stringify({ changes: changes.map(({ file, path, text }) => ({ file, path: path.join('.'), text, restart: file === 'gateway' })), risks }, null, 2)}\n`)
      return risks.length > 0 ? 3 : 0
    }
    if (changes.length === 0) process.stdout.write('Nothing would change.\n')
    const parts = [['Live, at the next reload', changes.filter(({ file }) => file !== 'gateway')], ['Only after a restart', changes.filter(({ file }) => file === 'gateway')]] as const
    for (const [title, lines] of parts) if (lines.length > 0) process.stdout.write(`${title}:\n${lines.map(({ file, text }) => `  ${file === 'users' ? '' : `${file}.yaml `}${text}`).join('\n')}\n`)
    if (risks.length > 0) process.stdout.write(`\nRisks:\n${risks.map(risk => `  ${paint('red', '!')} ${risk}`).join('\n')}\n`)
    if (changes.length > 0 && risks.length === 0) process.stdout.write(`\nNo risks seen (load balancer: ${inUnits('x-duration', balancerMs)}).\n`)
    return risks.length > 0 ? 3 : 0
  }
}

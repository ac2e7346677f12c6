/** `plan`: the changes and risks of another config, as text. */
import { jsonText } from './output.ts'
import { loadConfig } from '../config/load/load.ts'
import { comparePlan, type Plan } from '../config/load/plan.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { inUnits, toMilliseconds } from '../config/schema/primitives.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { type Command, CommandError, type GatewayAddress, UsageError } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin } from './admin-client.ts'
import { paint } from './colours.ts'

export const plan: Command = {
  summary: 'list what a new config folder would change, and the risks of it',
  ways: [
    { words: 'NEW_DIR', takes: ['config', 'balancer', 'json'], isLocal: true },
    { takes: ['config', 'balancer', 'json'] }
  ],
  details: `
Compares the config folder (--config) with NEW_DIR; without NEW_DIR, the running
gateway with the files of the config folder. Lists what a reload, and what a
restart, would change; nothing is changed. Both are checked first. Changes to
gateway.yaml need a restart; all others, and renewed certificates of server.tls
and ops.tls, take effect at a reload.

Examples:
  console-gateway plan -c /etc/console-gateway
  console-gateway plan /etc/console-gateway.next -c /etc/console-gateway --balancer 30s
Exit codes: 0 no risks, 3 risks; 1 faults, or no gateway answers.`,
  options: {
    balancer: {
      type: 'string',
      value: 'TIME',
      description: 'the response time-out of the load balancer before the gateway (default: 60s)'
    }
  },
  asksGateway: true,
  run: async ({ config: folder, gateway, rest: [target], values, json }) => {
    const { balancer = '60s' } = values
    const balancerMs = toMilliseconds(String(balancer))
    if (!Number.isFinite(balancerMs)) throw new UsageError('--balancer is a duration such as 60s.')
    const { changes, risks } =
      target === undefined
        ? await planOfRunning(gateway, balancerMs)
        : comparePlan(loadConfig(folder, process.env), await usableConfig(target), balancerMs)
    if (json) {
      process.stdout.write(jsonText({ changes, risks }))
      return risks.length > 0 ? 3 : 0
    }
    if (changes.length === 0) process.stdout.write('Nothing would change.\n')
    const parts = [
      ['Live, at the next reload', changes.filter(({ restart }) => !restart)],
      ['Only after a restart', changes.filter(({ restart }) => restart)]
    ] as const
    for (const [title, lines] of parts) {
      if (lines.length > 0) {
        const listed = lines.map(
          ({ file, text }) => `  ${file === 'users' ? '' : `${file}.yaml `}${printable(text)}\n`
        )
        process.stdout.write(`${title}:\n${listed.join('')}`)
      }
    }
    if (risks.length > 0) {
      process.stdout.write(
        `\nRisks:\n${risks.map(risk => `  ${paint('red', '!')} ${printable(risk)}`).join('\n')}\n`
      )
    }
    if (changes.length > 0 && risks.length === 0) {
      process.stdout.write(
        `\nNo risks found (load balancer: ${inUnits('x-duration', balancerMs)}).\n`
      )
    }
    return risks.length > 0 ? 3 : 0
  }
}

/** @throws ConfigError for a config that a reload would refuse */
async function usableConfig(folder: string): Promise<LoadedConfig> {
  const config = loadConfig(folder, process.env)
  await assertUsable(config)
  return config
}

/** The differences between the files of a folder and its running gateway. */
async function planOfRunning(gateway: GatewayAddress, balancerMs: number): Promise<Plan> {
  const response = await askAdmin(gateway, `/plan?balancerMs=${balancerMs}`)
  const faults = response['faults'] as readonly string[] | undefined
  if (faults !== undefined) throw new CommandError(faults.join('\n'))
  return response as unknown as Plan
}

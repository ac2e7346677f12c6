/** `plan`: the changes and risks of another config, as text. */
import { jsonText, paint } from './output.ts'
import { loadConfig } from '../config/read/load.ts'
import { comparePlan, type Plan } from '../config/risks.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { PlanAnswer } from '../ops/state-schemas.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { CommandError, type GatewayAddress, type Invocation, type Io } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin } from './admin-client.ts'

export async function plan({
  config: folder,
  gateway,
  rest: [target],
  json,
  io
}: Invocation): Promise<number> {
  const { changes, risks } =
    target === undefined
      ? await planOfRunning(gateway)
      : comparePlan(loadConfig(folder, io.env), await usableConfig(target, io.env))
  if (json) {
    io.stdout.write(jsonText({ changes, risks }))
    return risks.length > 0 ? 3 : 0
  }
  if (changes.length === 0) io.stdout.write('Nothing would change.\n')
  const parts = [
    ['Live, at the next reload', changes.filter(({ restart }) => !restart)],
    ['Only after a restart', changes.filter(({ restart }) => restart)]
  ] as const
  for (const [title, lines] of parts) {
    if (lines.length > 0) {
      const listed = lines.map(
        ({ file, text }) => `  ${file === 'users' ? '' : `${file}.yaml `}${printable(text)}\n`
      )
      io.stdout.write(`${title}:\n${listed.join('')}`)
    }
  }
  if (risks.length > 0) {
    io.stdout.write(
      `\nRisks:\n${risks.map(risk => `  ${paint('red', '!', io.stdout)} ${printable(risk)}`).join('\n')}\n`
    )
  }
  if (changes.length > 0 && risks.length === 0) {
    io.stdout.write('\nNo risks found.\n')
  }
  return risks.length > 0 ? 3 : 0
}

/** @throws ConfigError for a config that a reload would refuse */
async function usableConfig(folder: string, env: Io['env']): Promise<LoadedConfig> {
  const config = loadConfig(folder, env)
  await assertUsable(config)
  return config
}

/** The differences between the files of a folder and its running gateway. */
async function planOfRunning(gateway: GatewayAddress): Promise<Plan> {
  const answer = (await askAdmin(gateway, '/ops/api/plan')) as unknown as PlanAnswer
  const { faults, changes, risks } = answer
  if (faults.length > 0) throw new CommandError(faults.join('\n'))
  return { changes, risks }
}

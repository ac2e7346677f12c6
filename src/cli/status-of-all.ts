/** `status --all`: who runs what. */
import { jsonText } from './output.ts'
import type { ReplicasStatus } from '../admin/replicas.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin, table } from './admin-client.ts'
import type { GatewayAddress, Output } from './command.ts'

/** @returns the exit code */
export async function statusOfAll(
  gateway: GatewayAddress,
  json: boolean,
  stdout: Output
): Promise<number> {
  const response = (await askAdmin(gateway, '/ops/api/replicas')) as unknown as ReplicasStatus
  stdout.write(json ? jsonText(response) : inWords(response, stdout))
  const { replicas, silent } = response
  const isWell = silent.length === 0 && replicas.every(({ fault }) => fault === undefined)
  return isWell ? 0 : 3
}

const head = ['REPLICA', 'HOST', 'VERSION', 'STATE', 'GENERATION', 'CONFIG', 'FILES']

function inWords({ replicas, silent, info }: ReplicasStatus, stream: Output): string {
  const rows = replicas.map(({ id, host, version, ready, ...config }) => [
    id,
    host,
    version,
    ready ? 'ready' : 'not ready',
    String(config.generation),
    config.configHash,
    config.files
  ])
  const silentRows = silent.map(({ id, host, version, seenAt }) => [
    id,
    host,
    version,
    `silent, seen at ${seenAt}`
  ])
  const configs = new Set(replicas.map(({ configHash }) => configHash))
  const lines = [
    ...replicas.flatMap(({ id, fault }) => (fault === undefined ? [] : [`${id}: ${fault}`])),
    ...replicas.flatMap(({ id, restartNeeded }) =>
      restartNeeded.length > 0 ? [`${id} needs a restart: ${restartNeeded.join(', ')}`] : []
    ),
    ...(configs.size > 1 ? [`replicas run ${configs.size} different configs`] : []),
    ...(info === undefined ? [] : [info])
  ]
  return (
    table([head, ...rows, ...silentRows], stream) +
    lines.map(line => `${printable(line)}\n`).join('')
  )
}

/** `status --all`: who runs what. */
import { jsonText } from './output.ts'
import type { ReplicasStatus } from '../ops/state-schemas.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin } from './admin-client.ts'
import { table } from './table.ts'
import type { GatewayAddress, Output } from './command.ts'

/** @returns the exit code */
export async function statusOfAll(
  gateway: GatewayAddress,
  json: boolean,
  stdout: Output
): Promise<number> {
  const response = (await askAdmin(gateway, '/ops/api/replicas')) as unknown as ReplicasStatus
  stdout.write(json ? jsonText(response) : inWords(response, stdout))
  const isWell = response.replicas.every(({ fault, isSilent }) => fault === undefined && !isSilent)
  return isWell ? 0 : 3
}

const head = ['REPLICA', 'HOST', 'VERSION', 'STATE', 'GENERATION', 'CONFIG', 'FILES', 'REQUESTS/S']

function stateOf({ ready, isSilent, seenAt }: ReplicasStatus['replicas'][number]): string {
  if (isSilent) return `silent since ${seenAt}`
  return ready ? 'ready' : 'not ready'
}

function inWords({ replicas, info }: ReplicasStatus, stream: Output): string {
  const rows = replicas.map(replica => [
    replica.id,
    replica.host,
    replica.version,
    stateOf(replica),
    String(replica.generation),
    replica.configHash,
    replica.files,
    String(replica.requestsPerSecond)
  ])
  const configs = new Set(replicas.map(({ configHash }) => configHash))
  const lines = [
    `${replicas.length} ${replicas.length === 1 ? 'replica' : 'replicas'}`,
    ...replicas.flatMap(({ id, fault }) => (fault === undefined ? [] : [`${id}: ${fault}`])),
    ...replicas.flatMap(({ id, restartNeeded }) =>
      restartNeeded.length > 0 ? [`${id} needs a restart: ${restartNeeded.join(', ')}`] : []
    ),
    ...(configs.size > 1 ? [`replicas run ${configs.size} different configs`] : []),
    ...(info === undefined ? [] : [info])
  ]
  return table([head, ...rows], stream) + lines.map(line => `${printable(line)}\n`).join('')
}

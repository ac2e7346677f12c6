/** The notices on top of every page, each a link to the page that helps; the worst first. */
import type { GatewayState } from '../../services/gateway-state.ts'
import { partsOf } from '../health.ts'
import type { ReplicasStatus } from '../state-schemas.ts'

export type Notice = readonly [tone: 'bad' | 'warn', place: string, text: string]

type Replica = ReplicasStatus['replicas'][number]
type Finding = readonly [...Notice, which: readonly string[]]

const places: Readonly<Record<string, string>> = { config: 'config', maintenance: 'maintenance' }

export function attention(
  state: GatewayState,
  replicas: readonly Replica[],
  lockouts: number
): Notice[] {
  const { sessions: _, ...parts } = partsOf(state)
  const ofParts = Object.entries(parts).map(([name, text]): Finding => {
    const tone = name === 'maintenance' ? 'warn' : 'bad'
    return [tone, places[name] ?? '', name, [text]]
  })
  const silent = replicas.filter(({ isSilent }) => isSilent)
  const differ = new Set(replicas.map(({ configHash }) => configHash)).size > 1
  const refusing = state.refusing.map(({ limit, over }) => `${limit} (${over.slice(0, 3).join()})`)
  const all: readonly Finding[] = [
    ...ofParts,
    ['bad', '', 'Replicas are silent', silent.map(placeOf)],
    ['warn', '', 'Replicas run different configs', differ ? replicas.map(placeOf) : []],
    ['warn', 'config', 'Wait for a restart', state.config.restartNeeded],
    ['warn', 'limits', 'Limits refuse requests', refusing],
    ['warn', 'users', 'Locked out of signing in', lockouts > 0 ? [String(lockouts)] : []]
  ]
  return all
    .filter(([, , , which]) => which.length > 0)
    .map(([tone, place, what, which]): Notice => [tone, place, `${what}: ${which.join(', ')}`])
    .toSorted(([one], [other]) => one.localeCompare(other))
}

function placeOf({ id, host }: Replica): string {
  return `${id} at ${host}`
}

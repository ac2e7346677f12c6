/** The notices on top of every page, each a link to the page that helps; the worst first. */
import type { GatewayState } from '../../services/gateway-state.ts'
import type { ReplicasStatus } from '../state-schemas.ts'

export type Notice = readonly [tone: 'bad' | 'warn', place: string, text: string]

type Replicas = ReplicasStatus['replicas']

const notAgain = 'and the gateway will not start again with them'

export function attention(state: GatewayState, replicas: Replicas, lockouts: number): Notice[] {
  const { config, redis, upstreams, ledger, maintenance, refusing, sourceFaults } = state
  const { restartNeeded, files } = config
  const [fault] = files.faults ?? []
  const down = upstreams.filter(each => each.state !== 'up')
  const silent = replicas.filter(({ isSilent }) => isSilent)
  const hashes = new Set(replicas.map(({ configHash }) => configHash))
  const all: ReadonlyArray<readonly [Notice[0], string, string | false | undefined]> = [
    ['bad', '', redis?.up === false && 'Redis does not answer: nobody can sign in.'],
    ['bad', '', redis?.fault],
    ['bad', 'config', fault && `The config files are refused, ${notAgain}: ${fault}`],
    ['bad', '', ledger?.failing && `The audit ledger cannot be written: ${ledger.failing.reason}`],
    ['bad', '', down.length > 0 && `Upstreams are down: ${namesOf(down)}`],
    ...sourceFaults.map(
      ({ source, reason }) => ['bad', '', `Sign-in ${source} does not answer: ${reason}`] as const
    ),
    ['bad', '', silent.length > 0 && `Replicas are silent: ${hostsOf(silent)}`],
    ...maintenance.map(
      ({ author, detail }) =>
        ['warn', 'maintenance', `Maintenance by ${author}: ${detail}`] as const
    ),
    ['warn', '', hashes.size > 1 && `Replicas run different configs: ${hostsOf(replicas)}`],
    [
      'warn',
      'config',
      restartNeeded.length > 0 && `Wait for a restart: ${restartNeeded.join(', ')}`
    ],
    ['warn', 'limits', refusing.length > 0 && `Limits refuse requests: ${overOf(refusing)}`],
    ['warn', 'users', lockouts > 0 && `Locked out of signing in: ${lockouts}`]
  ]
  return all.flatMap(([tone, place, text]) => (text ? [[tone, place, text] as const] : []))
}

function namesOf(upstreams: GatewayState['upstreams']): string {
  return upstreams.map(({ upstream, address }) => `${upstream} (${address})`).join(', ')
}

function hostsOf(replicas: Replicas): string {
  return replicas.map(({ id, host }) => `${id} at ${host}`).join(', ')
}

function overOf(refusing: GatewayState['refusing']): string {
  return refusing.map(({ limit, over }) => `${limit} (${over.slice(0, 3).join(', ')})`).join(', ')
}

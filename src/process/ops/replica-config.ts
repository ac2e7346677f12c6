/** The config of all replicas: who runs what, and a reload or a rollback at each of them. */
import type { ReplicasStatus } from '../../admin/replicas.ts'
import { isRecord } from '../../json/values.ts'
import type { Replies } from '../../services/replica-bus.ts'
import type { Operated } from '../operated.ts'
import type { Confirmed } from '../reload/outcome.ts'
import { inWords, outcomeOf, type ReplicaOutcome, RollbackOfAll } from './rollback-of-all.ts'
import { filesOf } from './config-view.ts'

type Effect = Readonly<Record<string, unknown>>

interface Options extends Pick<Operated, 'ops' | 'reloader' | 'log'> {
  /** Of a reload of this replica, in numbers. */
  readonly reloadEffect: () => Promise<object>
  /** @throws where this replica has no such revision */
  readonly rollbackEffect: (hash: string) => Promise<object>
}

interface ReloadOfAllResult {
  /** `refused`: at one replica at least. `incomplete`: some did not confirm it. */
  readonly outcome: 'done' | 'refused' | 'incomplete'
  readonly replicas: readonly ReplicaOutcome[]
  readonly reasons: readonly string[]
}

const statusMs = 2000
/** Files are read and checked. */
const reloadMs = 30_000

export class ReplicaConfig {
  readonly #options: Options
  readonly #rollback: RollbackOfAll

  constructor(options: Options) {
    const { ops, reloader, log } = options
    const { bus } = ops
    this.#options = options
    this.#rollback = new RollbackOfAll({ bus, reloader, log })
    bus.serve('status', () => this.#status())
    bus.serve('reload', message => reloader.reload('operator', message as Confirmed))
    bus.serve('reload.preview', () => options.reloadEffect())
    bus.serve('rollback.preview', message => {
      const { hash } = message as { readonly hash: string }
      return options.rollbackEffect(hash)
    })
  }

  readonly status = async (): Promise<ReplicasStatus> => {
    const { bus, redis } = this.#options.ops
    const { replies, silent, problem } = await bus.ask('status', {}, statusMs)
    const infos = await bus.replicas()
    const unanswered = [...silent, ...replies.flatMap(r => ('error' in r ? [r.replica] : []))]
    const ofNone = 'No Redis is configured: this replica knows of no other.'
    const info = redis === undefined ? ofNone : problem
    return {
      replicas: replies.flatMap(reply =>
        'value' in reply && isRecord(reply.value)
          ? [reply.value as ReplicasStatus['replicas'][number]]
          : []
      ),
      silent: unanswered.map(id => {
        const { host, version, seenAt } = infos.find(each => each.id === id) ?? {}
        return { id, host: host ?? '', version: version ?? '', seenAt: seenAt ?? '' }
      }),
      ...(info !== undefined && { info })
    }
  }

  readonly reload = async (confirmed: Confirmed): Promise<ReloadOfAllResult> => {
    const { replies, silent } = await this.#options.ops.bus.ask('reload', confirmed, reloadMs)
    const unanswered = (replica: string, reason: string, outcome: 'refused' | 'not confirmed') => ({
      replica,
      outcome,
      faults: [reason]
    })
    const replicas: readonly ReplicaOutcome[] = [
      ...replies.map(reply =>
        'value' in reply
          ? outcomeOf(reply.replica, reply.value)
          : unanswered(reply.replica, reply.error, 'refused')
      ),
      ...silent.map(id => unanswered(id, 'it did not answer in time', 'not confirmed'))
    ]
    return {
      outcome: overall(replicas),
      replicas,
      reasons: replicas.filter(({ faults }) => faults !== undefined).map(inWords)
    }
  }

  readonly reloadEffect = async (): Promise<object> => {
    const { replies, silent } = await this.#options.ops.bus.ask('reload.preview', {}, statusMs)
    return { ...merged(replies), ...(silent.length > 0 && { silent }) }
  }

  readonly rollback = async (hash: string, confirmed: Confirmed): Promise<object> =>
    await this.#rollback.run(hash, confirmed)

  readonly rollbackEffect = async (hash: string): Promise<object> => {
    const { bus } = this.#options.ops
    const { replies, silent } = await bus.ask('rollback.preview', { hash }, statusMs)
    const missing = replies.flatMap(reply => ('error' in reply ? [reply.replica] : []))
    return {
      ...merged(replies),
      ...(missing.length > 0 && { missing }),
      ...(silent.length > 0 && { silent })
    }
  }

  async #status(): Promise<object> {
    const { ops, reloader } = this.#options
    const [info] = await ops.bus.replicas()
    const { state, since, faults } = filesOf(reloader)
    return {
      ...info,
      files: state,
      ...(since !== undefined && { since }),
      ...(faults?.[0] !== undefined && { fault: faults[0] }),
      restartNeeded: [...reloader.restartNeeded()]
    }
  }
}

function overall(replicas: readonly ReplicaOutcome[]): ReloadOfAllResult['outcome'] {
  const outcomes = new Set(replicas.map(({ outcome }) => outcome))
  if (outcomes.has('refused')) return 'refused'
  return outcomes.has('not confirmed') ? 'incomplete' : 'done'
}

/** Sessions are shared, and changes alike: what counts is the replica with the largest number. */
function merged(replies: Replies['replies']): Effect {
  const effects = replies.flatMap(reply =>
    'value' in reply && isRecord(reply.value) ? [reply.value] : []
  )
  const numbers = effects.flatMap(effect =>
    Object.entries(effect).filter((entry): entry is [string, number] => Number.isFinite(entry[1]))
  )
  const largest = Object.groupBy(numbers, ([name]) => name)
  return {
    replicas: effects.length,
    ...Object.fromEntries(
      Object.entries(largest).map(([name, entries = []]) => [
        name,
        Math.max(...entries.map(([, value]) => value))
      ])
    )
  }
}

/** The config of the running gateway for operators: what runs, and what the files hold. */
import type { ConfigFiles, ConfigNow, Contracts, Expectations } from '../../admin/config-data.ts'
import { configHashes } from '../../config/load/config-hash.ts'
import { comparePlan } from '../../config/load/plan.ts'
import { type Written, writtenDiff } from '../../config/load/written-diff.ts'
import type { Config } from '../../config/schema/config.ts'
import { describeFault } from '../../config/schema/faults.ts'
import type { Operated } from '../operated.ts'

type Options = Pick<Operated, 'config' | 'publicServer' | 'reloader' | 'state' | 'validate'>

/** The response time-out of a load balancer that `plan` takes without another one. */
const balancerMs = 60_000

/** Of deviations. */
const kinds = {
  missing: 'is missing',
  retyped: 'has another type',
  invalid: 'has a value that the schema does not allow',
  new: 'is new'
}

export class ConfigView {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  current(): ConfigNow {
    const { reloader, state } = this.#options
    const { folder, generation, hash, files, restartNeeded, taken } = state().config
    return {
      folder,
      generation,
      hash,
      installHash: configHashes(reloader.current().config).install,
      takenAt: taken.at,
      by: taken.by,
      changes: [...taken.changes],
      files: {
        state: files.state,
        ...(files.state === 'refused' && { since: files.since, faults: [...files.faults] }),
        places: reloader
          .faults()
          .map(({ file, line, path, message }) => ({ file, line, path, message }))
      },
      restartNeeded: [...restartNeeded]
    }
  }

  async files(): Promise<ConfigFiles> {
    const { validate, reloader } = this.#options
    const running = reloader.current().config
    const { result } = await validate()
    const none = { reload: [], restart: [], risks: [], files: [], faults: [] }
    if ('faults' in result) {
      const faults = result.faults.filter(({ severity }) => severity === 'fault')
      return { ...none, state: 'faulty', faults: faults.map(describeFault) }
    }
    const { changes, risks } = comparePlan(running, result.config, balancerMs)
    const inWords = (afterRestart: boolean) =>
      changes.filter(({ restart }) => restart === afterRestart).map(({ text }) => text)
    return {
      ...none,
      state: changes.length === 0 ? 'same' : 'different',
      reload: inWords(false),
      restart: inWords(true),
      risks: [...risks],
      files: writtenDiff(this.#writtenOf(running), result.config.written)
    }
  }

  /** Those of the running config are met, or it would not run. */
  expectations(): Expectations {
    const { reloader } = this.#options
    const { expect } = reloader.current().config.routes
    const faults = reloader.faults().filter(({ path }) => path.startsWith('expect.'))
    const isOf = (name: string, path: string) => `${path}.`.startsWith(`expect.${name}.`)
    const listed = Object.entries(expect).map(([name, { request, status, code, upstream }]) => {
      const outcome = [status, code, upstream && `upstream ${upstream}`].filter(
        each => each !== undefined
      )
      const messages = faults.filter(({ path }) => isOf(name, path)).map(({ message }) => message)
      return {
        name,
        text: `${name}: ${request} → ${outcome.join(', ')}`,
        isMet: messages.length === 0,
        ...(messages.length > 0 && { message: messages.join('; ') })
      }
    })
    const isListed = (path: string) => listed.some(({ name }) => isOf(name, path))
    const added = faults
      .filter(({ path }) => !isListed(path))
      .map(({ path, message }) => ({ name: path, text: path, isMet: false, message }))
    return { expectations: [...listed, ...added] }
  }

  contracts(): Contracts {
    const { reloader, publicServer } = this.#options
    const byRoute = new Map(publicServer.drift().map(drift => [drift.route, drift]))
    const { routes } = reloader.current().config.routes
    return {
      contracts: Object.entries(routes).flatMap(([route, { contract }]) => {
        if (contract === undefined) return []
        const { checked = 0, broken = 0, deviations = [] } = byRoute.get(route) ?? {}
        const inWords = deviations.map(({ path, kind }) => `${path} ${kinds[kind]}`)
        return [
          {
            route,
            mode: contract.mode,
            checked,
            broken,
            drift: [...new Set(inWords)]
          }
        ]
      })
    }
  }

  /** A running config has the `gateway.yaml` of the start, whatever its file says since then. */
  #writtenOf({ written }: Config): Written {
    return { ...written, gateway: this.#options.config.written.gateway }
  }
}

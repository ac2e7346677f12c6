/** The limits that apply to a request, and what is left of each now. */
import type { Counts } from '../../admin/limits.ts'
import type { ConfigFile } from '../../config/schema/config.ts'
import { inUnits } from '../../config/schema/primitives.ts'
import { ownMember, type Path } from '../../config/schema/visit.ts'
import type { Rule, Verdict } from '../../limits/counting/rules.ts'
import type { Context, Decision } from './decision.ts'

type Line = NonNullable<Decision['lines']>[number]

/** The caller's present counts in a running gateway; undefined if none answers. */
interface Counted {
  readonly counts: Counts | undefined
  readonly verdictOf: (rule: Rule) => Verdict | undefined
}

export function limitDecision(context: Context, counted: Counted): Decision {
  const { config, traced, refusedBy } = context
  const { rules, attempts, at } = traced
  const isChecked = rules.length > 0 || traced.trace.some(({ step }) => step === 'limits')
  if (!isChecked && refusedBy !== 'limits' && refusedBy !== 'route') {
    return { step: 'limits', result: 'skipped', text: 'nothing is counted' }
  }
  const lines = [
    ...rules.map(rule => ruleLine(context, rule, counted)),
    ...attempts.map(key => attemptsLine(context, key.slice(0, key.indexOf(':')))),
    ...(at?.route === 'login' ? lockoutLines(context) : []),
    ...inFlightLines(context, counted.counts)
  ]
  if (refusedBy === 'limits') {
    return { step: 'limits', result: 'refuses', text: traced.error?.message ?? '', lines }
  }
  const count = rules.length + attempts.length
  const text =
    count === 0
      ? 'none applies to this caller here'
      : `${count} of ${Object.keys(config.limits.limits).length} apply`
  return { step: 'limits', result: 'passes', text, lines }
}

function locationOf(name: string): [ConfigFile, Path] {
  return ['limits', ['limits', name]]
}

function ruleLine({ config, locate }: Context, rule: Rule, counted: Counted): Line {
  const { name, max, windowMs, burst, kind, enforced } = rule
  const by = (config.limits.limits[name]?.by ?? []).join(' and ')
  const room = kind === 'bucket' ? burst : max
  const verdict = counted.verdictOf(rule)
  const mode = enforced ? '' : ', in shadow: refuses nobody'
  const bound = `${name}: ${max} in ${inUnits('x-duration', windowMs)}${kindText(rule)}, by ${by}`
  return {
    text: `${bound}${mode}${usageText(verdict, room, counted.counts !== undefined)}`,
    at: locate(...locationOf(name)),
    facts: {
      limit: name,
      mode: enforced ? 'enforce' : 'shadow',
      by,
      max,
      windowMs,
      ...(kind === 'bucket' && { burst }),
      ...(verdict && {
        used: room - verdict.remaining,
        remaining: verdict.remaining,
        exceeded: verdict.exceeded,
        retryMs: verdict.retryMs,
        resetMs: verdict.resetMs
      })
    }
  }
}

function kindText({ kind, burst }: Rule): string {
  if (kind === 'bucket') return `, ${burst} at once`
  return kind === 'sliding' ? ', sliding' : ''
}

function usageText(verdict: Verdict | undefined, room: number, isCounted: boolean): string {
  if (verdict === undefined) {
    return isCounted ? '; the running gateway has other numbers or no such limit (reload?)' : ''
  }
  if (verdict.exceeded) return `; over it, for ${Math.ceil(verdict.retryMs / 1000)} s more`
  return `; ${room - verdict.remaining} used now, ${verdict.remaining} left`
}

/** Counted when a password is tried. The counts of an account are not public. */
function attemptsLine({ config, locate }: Context, name: string): Line {
  const limit = config.limits.limits[name]
  const by = (limit?.by ?? []).join(' and ')
  const attempts = limit?.refusedOnly === true ? 'refused attempts' : 'attempts'
  const window = inUnits('x-duration', limit?.window ?? 0)
  const mode = limit?.mode === 'shadow' ? ', in shadow: refuses nobody' : ''
  return {
    text: `${name}: ${limit?.max ?? ''} ${attempts} in ${window}, by ${by}${mode}`,
    at: locate(...locationOf(name)),
    facts: { limit: name, mode: limit?.mode, by, max: limit?.max, windowMs: limit?.window }
  }
}

/** The rules of lockouts; `lockouts list` shows who is locked now. */
function lockoutLines({ config, locate }: Context): Line[] {
  return (['account', 'address'] as const).flatMap(kind => {
    const { mode, after, within, delay, longest: maxLockMs } = config.limits.lockout[kind]
    if (mode === 'off') return []
    const [window, first, last] = [within, delay, maxLockMs].map(ms => inUnits('x-duration', ms))
    const shadow = mode === 'shadow' ? ', in shadow: locks nobody' : ''
    return [
      {
        text: `lockout of the ${kind}: after ${after} failures in ${window}, for ${first} up to ${last}${shadow}`,
        at: locate('limits', ['lockout', kind]),
        facts: {
          lockout: kind,
          mode,
          after,
          withinMs: within,
          delayMs: delay,
          longestMs: maxLockMs
        }
      }
    ]
  })
}

function inFlightLines(context: Context, counts: Counts | undefined): Line[] {
  const {
    config: { limits },
    traced: { at }
  } = context
  const counted = Object.entries(counts?.inFlight ?? {})
  const countOf = (isRoute: boolean) =>
    counted.find(([name]) => name.startsWith('route:') === isRoute)?.[1]
  const key = at?.route === 'login' ? 'inFlightSignIns' : 'inFlightPerUser'
  const lines = [inFlightLine(context, [key], limits[key], countOf(false))]
  const ofRoute = ownMember(limits.inFlightPerRoute, at?.route ?? '')
  if (ofRoute !== undefined) {
    lines.push(inFlightLine(context, ['inFlightPerRoute', at?.route ?? ''], ofRoute, countOf(true)))
  }
  return lines
}

function inFlightLine(
  { locate }: Context,
  path: readonly [string, ...string[]],
  max: number,
  used: number | undefined
): Line {
  const [limit] = path
  return {
    text: `${limit}: ${max} at the same time${used === undefined ? '' : `; ${used} now`}`,
    at: locate('limits', path),
    facts: { limit, max, ...(used !== undefined && { used }) }
  }
}

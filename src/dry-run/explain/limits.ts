/** Which limits hold for a request, and what is left of each now. */
import type { ConfigFile, LoadedConfig } from '../../config/schema/config.ts'
import { inUnits } from '../../config/schema/primitives.ts'
import type { Path } from '../../config/schema/visit.ts'
import type { Counts } from '../../admin/limits.ts'
import type { Decision, Location, Locate } from './decision.ts'
import type { Rule, Verdict } from '../../limits/counting/rules.ts'
import type { Traced } from '../traced-app.ts'

type Line = NonNullable<Decision['lines']>[number]

export function limitDecision(
  config: LoadedConfig,
  { rules, attempts, trace, at, error }: Traced,
  refusedBy: Decision['step'] | undefined,
  known: Counts | undefined,
  verdictOf: (rule: Rule) => Verdict | undefined,
  place: Locate
): Decision {
  const wasAsked = rules.length > 0 || trace.some(({ hook }) => hook === 'checkLimits')
  const { limits } = config
  if (!wasAsked && refusedBy !== 'limits' && refusedBy !== 'route')
    return { step: 'limits', outcome: 'unasked', text: 'nothing is counted' }
  const lines = [
    ...rules.map(rule =>
      ofRule(rule, config, known !== undefined, verdictOf(rule), place(...whereOf(rule.name)))
    ),
    ...attempts.map(key => ofAttempts(key.slice(0, key.indexOf(':')), config, place)),
    ...(at?.route === 'login' ? ofLockout(config, place) : []),
    ...ofFlight(config, at?.route, known, place)
  ]
  const text =
    refusedBy === 'limits'
      ? (error?.message ?? '')
      : rules.length + attempts.length === 0
        ? 'none holds for this caller here'
        : `${rules.length + attempts.length} of ${Object.keys(limits.limits).length} hold`
  return { step: 'limits', outcome: refusedBy === 'limits' ? 'refuses' : 'passes', text, lines }
}

function whereOf(name: string): [ConfigFile, Path] {
  return ['limits', ['limits', name]]
}

function ofRule(
  rule: Rule,
  { limits: { limits } }: LoadedConfig,
  isAsked: boolean,
  verdict: Verdict | undefined,
  at: Location
): Line {
  const { name, max, windowMs, burst, kind, enforced } = rule
  const by = (limits[name]?.by ?? []).join(' and ')
  const room = kind === 'bucket' ? burst : max
  const mode = enforced ? '' : ', in shadow: refuses nobody'
  const says = `${name}: ${max} in ${inUnits('x-duration', windowMs)}${kind === 'bucket' ? `, ${burst} at once` : kind === 'sliding' ? ', sliding' : ''}, by ${by}${mode}`
  const now =
    verdict === undefined
      ? isAsked
        ? '; the running gateway has it with other numbers or not at all (reload?)'
        : ''
      : verdict.exceeded
        ? `; over it, for ${seconds(verdict.retryMs)} more`
        : `; ${room - verdict.remaining} used now, ${verdict.remaining} left`
  return {
    text: says + now,
    at,
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

function seconds(ms: number) {
  return `${Math.ceil(ms / 1000)} s`
}

/** Counted once somebody tries a password; what is counted of an account is not told here. */
function ofAttempts(name: string, { limits: { limits } }: LoadedConfig, place: Locate): Line {
  const limit = limits[name]
  const by = (limit?.by ?? []).join(' and ')
  return {
    text: `${name}: ${limit?.max ?? ''} ${limit?.refusedOnly === true ? 'refused attempts' : 'attempts'} in ${inUnits('x-duration', limit?.window ?? 0)}, by ${by}${limit?.mode === 'shadow' ? ', in shadow: refuses nobody' : ''}`,
    at: place(...whereOf(name)),
    facts: { limit: name, mode: limit?.mode, by, max: limit?.max, windowMs: limit?.window }
  }
}

/** Who is locked now, `bans list` tells. */
function ofLockout({ limits: { lockout } }: LoadedConfig, place: Locate): Line[] {
  return (['account', 'address'] as const).flatMap(whose => {
    const { mode, after, within, delay, longest } = lockout[whose]
    if (mode === 'off') return []
    return [
      {
        text: `lockout of the ${whose}: after ${after} failures in ${inUnits('x-duration', within)}, for ${inUnits('x-duration', delay)} up to ${inUnits('x-duration', longest)}${mode === 'shadow' ? ', in shadow: locks nobody' : ''}`,
        at: place('limits', ['lockout', whose]),
        facts: { lockout: whose, mode, after, withinMs: within, delayMs: delay, longestMs: longest }
      }
    ]
  })
}

function ofFlight(
  { limits }: LoadedConfig,
  route: string | undefined,
  known: Counts | undefined,
  place: Locate
): Line[] {
  const now = (isWho: boolean) =>
    Object.entries(known?.inFlight ?? {}).find(([name]) => name.startsWith('route:') !== isWho)?.[1]
  const line = (key: string, path: Path, max: number, running: number | undefined): Line => ({
    text: `${key}: ${max} at the same time${running === undefined ? '' : `; ${running} now`}`,
    at: place('limits', path),
    facts: { limit: key, max, ...(running !== undefined && { used: running }) }
  })
  const ofRoute = route === undefined ? undefined : limits.inFlightPerRoute[route]
  const bound = route === 'login' ? 'inFlightSignIns' : 'inFlightPerUser'
  const lines = [line(bound, [bound], limits[bound], now(true))]
  if (ofRoute !== undefined) {
    lines.push(line('inFlightPerRoute', ['inFlightPerRoute', route ?? ''], ofRoute, now(false)))
  }
  return lines
}

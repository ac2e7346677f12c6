/** The limits that apply to a request. */
import { inUnits } from '../../config/schema/primitives.ts'
import { ownMember } from '../../config/schema/visit.ts'
import type { TrailRule } from '../../observability/trail.ts'
import type { Context, Decision } from './decision.ts'

type Line = NonNullable<Decision['lines']>[number]

export function limitDecision(context: Context): Decision {
  const { config, traced, refusedBy } = context
  const { rules, at } = traced
  const isChecked = rules.length > 0 || traced.trace.some(({ step }) => step === 'limits')
  if (!isChecked && refusedBy !== 'limits' && refusedBy !== 'route') {
    return { step: 'limits', result: 'skipped', text: 'nothing is counted' }
  }
  const lines = [
    ...rules.map(rule => ruleLine(context, rule)),
    ...(at?.route === 'login' ? lockoutLines(context) : []),
    ...inFlightLines(context)
  ]
  if (refusedBy === 'limits') {
    return { step: 'limits', result: 'refuses', text: traced.error?.message ?? '', lines }
  }
  const text =
    rules.length === 0
      ? 'none applies to this caller here'
      : `${rules.length} of ${Object.keys(config.limits.limits).length} apply`
  return { step: 'limits', result: 'passes', text, lines }
}

function ruleLine({ config, locate }: Context, { name, rate, enforced }: TrailRule): Line {
  const { max, windowMs, burst } = rate
  const by = (config.limits.limits[name]?.by ?? []).join(' and ')
  const atOnce = burst === max ? '' : `, ${burst} at once`
  const mode = enforced ? '' : ', in shadow: refuses nobody'
  return {
    text: `${name}: ${max} in ${inUnits('x-duration', windowMs)}${atOnce}, by ${by}${mode}`,
    at: locate('limits', ['limits', name]),
    facts: { limit: name, mode: enforced ? 'enforce' : 'shadow', by, max, windowMs, burst }
  }
}

/** The rules of lockouts; `lockouts list` shows who is locked now. */
function lockoutLines({ config, locate }: Context): Line[] {
  return (['accountAndAddress', 'address', 'account'] as const).flatMap(kind => {
    const lockout = config.limits.lockout[kind]
    if (lockout === 'off') return []
    const { failures, every } = lockout
    return [
      {
        text: `lockout.${kind}: ${failures} failures, then one in ${inUnits('x-duration', every)}`,
        at: locate('limits', ['lockout', kind]),
        facts: { lockout: kind, failures, everyMs: every }
      }
    ]
  })
}

function inFlightLines(context: Context): Line[] {
  const {
    config: { limits },
    traced: { at }
  } = context
  const key = at?.route === 'login' ? 'inFlightSignIns' : 'inFlightPerUser'
  const lines = [inFlightLine(context, [key], limits[key])]
  const ofRoute = ownMember(limits.inFlightPerRoute, at?.route ?? '')
  if (ofRoute !== undefined) {
    lines.push(inFlightLine(context, ['inFlightPerRoute', at?.route ?? ''], ofRoute))
  }
  return lines
}

function inFlightLine(
  { locate }: Context,
  path: readonly [string, ...string[]],
  max: number
): Line {
  const [limit] = path
  return {
    text: `${limit}: ${max} at the same time`,
    at: locate('limits', path),
    facts: { limit, max }
  }
}

/** The risks of changes in `limits.yaml`: what becomes loose, or refuses callers now. */
import type { LimitConfig, LimitsConfig } from '../schema/limits.ts'

export function limitRisks(before: LimitsConfig, after: LimitsConfig): string[] {
  return [
    ...Object.entries(before.limits).flatMap(([name, old]) => {
      const now = Object.hasOwn(after.limits, name) ? after.limits[name] : undefined
      const risks = now === undefined ? ['is removed'] : ofLimit(old, now)
      return risks.map(risk => `limits.${name} ${risk}`)
    }),
    ...ofLockout(before, after),
    ...ofSizes(before, after)
  ]
}

function ofLimit(old: LimitConfig, now: LimitConfig): string[] {
  const wasEnforced = old.mode === 'enforce'
  if (now.mode !== 'enforce') return wasEnforced ? ['no longer refuses anyone'] : []
  return [...ofNumbers(old, now), ...(wasEnforced ? ofCallers(old, now) : [])]
}

function ofNumbers(old: LimitConfig, now: LimitConfig): string[] {
  const rate = now.max / now.window / (old.max / old.window)
  const atOnce = (now.burst ?? now.max) / (old.burst ?? old.max)
  const reached = 'callers may reach it now'
  if (rate >= 10) return [`is ${Math.round(rate)} times looser`]
  if (rate <= 0.1) return [`is ${Math.round(1 / rate)} times tighter: ${reached}`]
  if (atOnce >= 10) return [`lets ${Math.round(atOnce)} times more requests pass at once`]
  if (atOnce > 0.1) return []
  return [`lets ${Math.round(1 / atOnce)} times fewer requests pass at once: ${reached}`]
}

/** Callers that the limit no longer counts, or counts otherwise. */
function ofCallers(old: LimitConfig, now: LimitConfig): string[] {
  const [byBefore, byNow] = [old.by, now.by].map(by => by.toSorted().join(' and '))
  return [
    ...(['routes', 'methods', 'roles'] as const)
      .filter(key => isNarrower(old[key], now[key]))
      .map(key => `no longer applies to all ${key} that it applied to`),
    ...(byBefore === byNow ? [] : [`counts by ${byNow}, it was by ${byBefore}`])
  ]
}

/** Of lists of which an empty one names all. */
function isNarrower(before: readonly string[], now: readonly string[]): boolean {
  if (now.length === 0) return false
  return before.length === 0 || before.some(each => !now.includes(each))
}

function ofLockout({ lockout: before }: LimitsConfig, { lockout: after }: LimitsConfig): string[] {
  return (['accountAndAddress', 'address', 'account'] as const).flatMap(whom => {
    const [old, now] = [before[whom], after[whom]]
    if (old === 'off') return []
    if (now === 'off') return [`lockout.${whom} counts nothing any more: passwords may be guessed`]
    return now.failures / old.failures >= 10 || old.every / now.every >= 10
      ? [`lockout.${whom} is at least ten times looser`]
      : []
  })
}

function ofSizes({ sizes: before }: LimitsConfig, { sizes: after }: LimitsConfig): string[] {
  return (Object.keys(after) as Array<keyof typeof after>).flatMap(name => {
    const factor = after[name] / before[name]
    return factor >= 10 ? [`sizes.${name} is ${Math.round(factor)} times larger`] : []
  })
}

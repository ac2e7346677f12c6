/** The risks of changes in `limits.yaml`: what becomes loose. */
import type { LimitConfig, LimitsConfig } from './schema/limits.ts'
import { ownMember } from './schema/node.ts'

export function limitRisks(before: LimitsConfig, after: LimitsConfig): string[] {
  return [
    ...Object.entries(before.limits).flatMap(([name, old]) => {
      const now = ownMember(after.limits, name)
      const risks = now === undefined ? ['is removed'] : ofLimit(old, now)
      return risks.map(risk => `limits.${name} ${risk}`)
    }),
    ...ofLockout(before, after),
    ...ofSizes(before, after)
  ]
}

function ofLimit(old: LimitConfig, now: LimitConfig): string[] {
  if (old.mode !== 'enforce') return []
  if (now.mode !== 'enforce') return ['no longer refuses anyone']
  const rate = now.max / now.window / (old.max / old.window)
  const atOnce = (now.burst ?? now.max) / (old.burst ?? old.max)
  const [byBefore, byNow] = [old.by, now.by].map(by => by.toSorted().join(' and '))
  return [
    ...(rate >= 10 ? [`is ${Math.round(rate)} times looser`] : []),
    ...(rate < 10 && atOnce >= 10
      ? [`lets ${Math.round(atOnce)} times more requests pass at once`]
      : []),
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

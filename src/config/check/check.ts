/** Rules between keys and between files. Pure: every fault is reported, nothing is read or changed. */
import type { UsersConfig } from '../schema/users.ts'
import { checkAdvice } from './advice.ts'
import { checkAnswers } from './answers.ts'
import { checkEnvelope } from './envelope.ts'
import { checkGateway } from './gateway.ts'
import { checkNames } from './names.ts'
import { checkContracts, checkParts } from './parts.ts'
import { checkPaths } from './paths.ts'
import { checkReferences } from './references.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'
import { checkShapes } from './shapes.ts'
import { checkSources } from './sources.ts'
import { checkTls } from './tls.ts'
import { checkBackEndTokens, checkUpstreams } from './upstreams.ts'

const rules = [
  checkReferences,
  checkGateway,
  checkTls,
  checkEnvelope,
  checkSources,
  checkBackEndTokens,
  checkNames,
  checkUpstreams,
  checkPaths,
  checkParts,
  checkAnswers,
  checkShapes,
  checkContracts,
  checkLimits,
  checkAdvice
]

export function checkConfig(config: CheckedConfig, report: Report): void {
  for (const rule of rules) rule(config, report)
}

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  for (const [username, user] of Object.entries(users)) {
    const { id = username } = user
    const other = usernames.get(id)
    if (other === undefined) usernames.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
}

function checkLimits({ limits: { limits } }: CheckedConfig, report: Report): void {
  for (const [name, { by, routes, roles, burst, max }] of Object.entries(limits)) {
    const fault = (key: string, message: string) => report(['limits', name, key], message)
    const isOfProfile = by.some(each => each.startsWith('profile.'))
    const isOfUsers = isOfProfile || by.some(each => ['user', 'session', 'key'].includes(each))
    if (isOfUsers && routes.join() === 'login') {
      fault('by', 'counts nobody, since sign-in has no user yet; set by: address')
    }
    if (isOfProfile && by.filter(each => each !== 'address').length > 1) {
      fault('by', 'a member of the profile stands alone, or beside address')
    }
    if (roles.length > 0 && !isOfUsers) {
      fault('roles', 'only signed-in callers have roles: set by: user or by: session')
    }
    if (burst !== undefined && burst > max) {
      fault('burst', 'is more than max: the bucket would hold more than one window refills')
    }
  }
}

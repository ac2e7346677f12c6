/** Rules for `session` of `gateway.yaml`: its secrets, life-times and cookie. */
import { usesRedis } from '../schema/gateway.ts'
import type { CheckedConfig, Report } from './report.ts'

type Install = Pick<CheckedConfig, 'gateway'>

export function checkSession({ gateway }: Install, report: Report): void {
  checkSecrets({ gateway }, report)
  const { session } = gateway
  if (session.idle > session.absolute) {
    const how = { warning: true, also: ['session', 'absolute'] }
    const message = 'is longer than session.absolute, so it never applies'
    report(['session', 'idle'], message, how)
  }
  if (session.cookie.sameSite === 'none' && !session.cookie.secure) {
    report(
      ['session', 'cookie', 'sameSite'],
      'browsers refuse SameSite=None without Secure: set session.cookie.secure: true'
    )
  }
  if (!session.cookie.secure) {
    report(
      ['session', 'cookie', 'secure'],
      'the session cookie travels without https; fine on loopback, nowhere else',
      { warning: true }
    )
  }
}

function checkSecrets({ gateway }: Install, report: Report): void {
  const { secrets } = gateway.session
  secrets.forEach((secret, index) => {
    const place = ['session', 'secrets', index]
    if (secret.length < 32) {
      const message =
        'the secret has fewer than 32 characters; ' +
        'make one with `console-gateway generate-secret`'
      report(place, message)
    }
    const first = secrets.indexOf(secret)
    if (first === index) return
    const message = 'is listed twice: remove it, or write the one that was meant'
    const how = { warning: true, also: ['session', 'secrets', first] }
    report(place, message, how)
  })
  if (usesRedis(gateway) && secrets.length === 0) {
    const message =
      'with Redis, sessions outlive this process, so the secret must not change at a restart: ' +
      'set ${SESSION_SECRET} or file:PATH; make one with `console-gateway generate-secret`'
    report(['session', 'secrets'], message)
  }
}

/** The request of a dry run, as a browser with the console would send it. */
import type { LoadedConfig } from '../../config/schema/config.ts'
import type { OfflineRequest } from '../offline-app.ts'
import type { TracedApp } from '../traced-app.ts'
import type { Explained } from './decision.ts'

/** @returns the request with assumed headers and body, which `headers` and `body` replace */
export async function requestOf(
  { gateway, routes }: LoadedConfig,
  { method, target, from, headers, body, who }: Explained,
  { signIn }: Pick<TracedApp, 'signIn'>
): Promise<OfflineRequest> {
  const passed = Object.values(routes.routes).flatMap(({ passCookies }) => passCookies)
  const cookies = [
    ...(who === undefined ? [] : [await signIn(who)]),
    ...new Set(['other', ...passed].map(name => `${name}=1`))
  ]
  const ofPage = !['sec-fetch-site', 'origin', 'referer'].some(name => Object.hasOwn(headers, name))
  const { username, password } = gateway.login.fields
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method)
  const sent =
    body ??
    (hasBody
      ? JSON.stringify({ [username]: who?.identity.username ?? 'someone', [password]: 'explained' })
      : undefined)
  return {
    method,
    target,
    address: from,
    headers: {
      'host': gateway.server.hosts[0] ?? 'localhost',
      'accept': 'application/json',
      'accept-encoding': 'gzip, deflate, br',
      'accept-language': 'en',
      'user-agent': 'Mozilla/5.0',
      'authorization': 'Bearer of-the-page',
      'cookie': cookies.join('; '),
      ...(ofPage && { 'sec-fetch-site': 'same-origin' }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    ...(sent !== undefined && { body: sent })
  }
}

/** Sign-in elsewhere than at the back-end, which gives the gateway a token for each user. */
import { testAuthority } from '../support/authority.ts'
import { oidcPath, testProvider } from '../support/oidc-provider.ts'
import { service as directoryService, suffix, testDirectory } from '../support/slapd.ts'
import { hashOf } from '../support/users.ts'
import { service, users } from './backend.ts'
import type { NodePage } from './node-page.ts'

export const elsewhereNames = ['file', 'LDAP', 'OIDC'] as const

export interface Elsewhere {
  readonly name: (typeof elsewhereNames)[number]
  /** `login.sources`, in the place of the back-end's own. */
  readonly sources: object
  /** What the user types. */
  readonly username: string
  /** Of users.yaml. */
  readonly users?: object
  readonly environment?: Readonly<Record<string, string>>
  /** The user leaves the console for the provider's page, and comes back. */
  readonly visitProvider?: (page: NodePage, gatewayUrl: string) => Promise<unknown>
}

/** For `credential` of the upstream. */
export const exchange = {
  path: '/service/token',
  headers: { 'x-service-key': service.key },
  token: 'token'
}

const { username, name, password, role } = users.admin
const entry = { id: '1', name, password: hashOf(password), roles: [role] }
const staff = { kind: 'users-file' }

/** @param cleanUp ends the directory and the provider, which serve all gateways */
export async function startElsewhere(
  cleanUp: (undo: () => unknown) => void
): Promise<readonly Elsewhere[]> {
  const file = { name: 'file', sources: { staff }, username, users: { [username]: entry } } as const
  return [file, await startLdap(cleanUp), await startOidc(cleanUp)]
}

async function startLdap(cleanUp: (undo: () => unknown) => void): Promise<Elsewhere> {
  const unit = { objectClass: ['organizationalUnit'] }
  const { port } = await testDirectory(cleanUp, testAuthority(cleanUp), {
    'ou=people': unit,
    'ou=groups': unit,
    [`uid=${username},ou=people`]: {
      objectClass: ['inetOrgPerson'],
      uid: username,
      cn: name,
      sn: name,
      userPassword: password
    },
    [`cn=${role},ou=groups`]: {
      objectClass: ['groupOfNames'],
      member: [`uid=${username},ou=people,${suffix}`]
    }
  })
  const directory = {
    kind: 'ldap',
    urls: [`ldap://127.0.0.1:${port}`],
    startTls: false,
    bind: { dn: directoryService.dn, password: '${LDAP_PASSWORD}' },
    base: `ou=people,${suffix}`,
    groups: { base: `ou=groups,${suffix}` }
  }
  return {
    name: 'LDAP',
    sources: { directory },
    username,
    environment: { LDAP_PASSWORD: directoryService.password }
  }
}

/**
 * Most consoles stay outside until they have a token of a sign-in, which opens nothing, and a
 * provider gives them none. Their operators have to change that. Here somebody whom the back-end
 * does not know has signed in by the form before.
 */
async function startOidc(cleanUp: (undo: () => unknown) => void): Promise<Elsewhere> {
  const provider = await testProvider(cleanUp)
  provider.accounts[username] = { preferred_username: username, name, groups: ['console-admins'] }
  return {
    name: 'OIDC',
    sources: { staff, sso: provider.config() },
    username: 'former',
    users: { former: entry },
    environment: provider.environment,
    visitProvider: async (page, gatewayUrl) => {
      provider.register(gatewayUrl)
      const ask = (path: string) => page.fetch(path, { headers: { 'sec-fetch-dest': 'document' } })
      const before = Object.keys(page.allCookies()).map(
        key => [key, page.cookies.get(key)] as const
      )
      const location = (await ask(oidcPath)).headers.get('location') ?? ''
      const { pathname, search } = new URL(await provider.browser()(location, username))
      await ask(pathname + search)
      await ask(`${oidcPath}/finish${search}`)
      for (const [key, value] of before) if (value !== undefined) page.cookies.set(key, value)
    }
  }
}

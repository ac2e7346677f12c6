/** Sign-in elsewhere than at the back-end, which gets a token from the gateway. */
import { runInNewContext } from 'node:vm'
import { presetText } from '../../src/config/read/presets.ts'
import { testAuthority } from '../support/authority.ts'
import { oidcPath, testProvider } from '../support/oidc-provider.ts'
import { service as directoryService, suffix, testDirectory } from '../support/slapd.ts'
import { hashOf } from '../support/users.ts'
import type { ConsoleSpec } from './console.ts'
import { OpenConsole } from './driver.ts'
import type { NodePage } from './page.ts'
import { admin, service } from './server.ts'

export const elsewhereNames = ['file', 'LDAP', 'OIDC'] as const

export interface Elsewhere {
  readonly name: (typeof elsewhereNames)[number] | 'JWT'
  /** `login.sources`, beside the back-end's own. */
  readonly sources: object
  /** Of users.yaml. */
  readonly users?: object
  readonly environment?: Readonly<Record<string, string>>
  /** How the upstream gets a token. */
  readonly credential: object
  /** The user leaves the console for the provider's page, and comes back. */
  readonly visit?: (console: ConsoleSpec, page: NodePage, gatewayUrl: string) => Promise<unknown>
}

type CleanUp = (undo: () => unknown) => void

const { username, name, password, role } = admin
const entry = { id: '1', name, password: hashOf(password), roles: [role] }
const staff = { kind: 'users-file' }

const headers = { 'x-service-key': service.key }
const credential = { exchange: { path: '/service/token', headers, token: 'token' } }

const file = { name: 'file', sources: { staff }, users: { [username]: entry } } as const

/** @param cleanUp ends the directory and the provider, which serve all gateways */
export async function startElsewhere(cleanUp: CleanUp): Promise<readonly Elsewhere[]> {
  return [
    { ...file, credential },
    {
      ...file,
      name: 'JWT',
      credential: { jwt: { secret: '${JWT_SECRET}' } },
      environment: { JWT_SECRET: service.jwtSecret }
    },
    await startLdap(cleanUp),
    await startOidc(cleanUp)
  ]
}

async function startLdap(cleanUp: CleanUp): Promise<Elsewhere> {
  const unit = { objectClass: ['organizationalUnit'] }
  const uid = `uid=${username},ou=people`
  const { port } = await testDirectory(cleanUp, testAuthority(cleanUp), {
    'ou=people': unit,
    'ou=groups': unit,
    [uid]: {
      objectClass: ['inetOrgPerson'],
      uid: username,
      cn: name,
      sn: name,
      userPassword: password
    },
    [`cn=${role},ou=groups`]: { objectClass: ['groupOfNames'], member: [`${uid},${suffix}`] }
  })
  const directory = {
    kind: 'ldap',
    urls: [`ldap://127.0.0.1:${port}`],
    startTls: false,
    bind: { dn: directoryService.dn, password: '${LDAP_PASSWORD}' },
    base: `ou=people,${suffix}`,
    groups: { base: `ou=groups,${suffix}` }
  }
  const environment = { LDAP_PASSWORD: directoryService.password }
  return { name: 'LDAP', sources: { directory }, environment, credential }
}

/** The same user, whom nothing but the provider knows. */
export async function startOidc(cleanUp: CleanUp): Promise<Elsewhere> {
  const provider = await testProvider(cleanUp)
  provider.accounts[username] = { preferred_username: username, name, groups: ['console-admins'] }
  return {
    name: 'OIDC',
    sources: { staff, sso: provider.config() },
    environment: provider.environment,
    credential,
    visit: async (console, page, gatewayUrl) => {
      provider.register(gatewayUrl)
      const ask = (path: string) => page.fetch(path, { headers: { 'sec-fetch-dest': 'document' } })
      const location = (await ask(oidcPath)).headers.get('location') ?? ''
      const { pathname, search } = new URL(await provider.browser()(location, username))
      await ask(pathname + search)
      await ask(`${oidcPath}/finish${search}`)
      await runPresetLine(console, page)
    }
  }
}

/**
 * Most consoles stay outside until they have a token of a sign-in, which opens nothing, and a
 * provider gives them none. The page of each preset has a line for that.
 */
async function runPresetLine(console: ConsoleSpec, page: NodePage): Promise<void> {
  const head = presetText('console', console.name).replaceAll('\n# ', ' ')
  const [, line = ''] = /\*\*OpenID Connect\*\*.*?`(if [^`]*)`/.exec(head) ?? []
  const ownCode = new OpenConsole(console, page).ownCode()
  await runInNewContext(`(async () => { ${line} })()`, { ...ownCode, fetch: page.fetch })
}

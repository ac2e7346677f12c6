import { ldap } from '../../config/schema/ldap.ts'
import { oidc } from '../../config/schema/oidc.ts'
import { hashPassword } from '../../login/argon2.ts'
import { readNewPassword } from '../prompt.ts'
import type { Answers } from './answers.ts'
import type { Draft } from './files.ts'

type Fill = (draft: Draft, answers: Answers) => Promise<void>

export const otherSources: Readonly<Record<string, Fill>> = {
  file: askUser,
  oidc: askProvider,
  ldap: askDirectory
}

async function askUser(draft: Draft, answers: Answers): Promise<void> {
  const name = await answers.ask('user', { message: 'The first user: name', initial: 'admin' })
  const password = await readNewPassword(answers.io, answers.text('password-env'))
  draft.secrets.push(password)
  draft.users = { [name]: { password: await hashPassword(password), roles: ['admin'] } }
  draft.other = { name: 'users-file', source: { kind: 'users-file' } }
}

async function askProvider(draft: Draft, answers: Answers): Promise<void> {
  const { issuer: ofIssuer } = oidc.properties
  const message = 'Issuer of the OpenID provider'
  const issuer = await answers.ask('issuer', { message, check: fitting(ofIssuer) })
  const clientId = await answers.ask('client-id', { message: 'Id of the client there' })
  const clientSecret = '${OIDC_SECRET}'
  draft.other = { name: 'sso', source: { kind: 'oidc', issuer, clientId, clientSecret } }
  draft.variables.push('OIDC_SECRET')
  draft.notes.push(
    ['login', 'TODO Register the redirect URI at the provider: /api/auth/oidc/sso/callback.'],
    ['login', 'TODO OIDC_SECRET, in .env: the secret of the client.'],
    ['login', 'TODO `user.roles`: the claim with the roles. Without it nobody has one.']
  )
}

async function askDirectory(draft: Draft, answers: Answers): Promise<void> {
  const { urls, base: ofBase } = ldap.properties
  const message = 'URL of the directory, such as ldaps://ldap.example.com'
  const url = await answers.ask('ldap-url', { message, check: fitting(urls.items) })
  const below = 'Users are below, such as ou=people,dc=example,dc=com'
  const base = await answers.ask('ldap-base', { message: below, check: fitting(ofBase) })
  const bind = { dn: `cn=console-gateway,${base}`, password: '${LDAP_PASSWORD}' }
  draft.other = { name: 'directory', source: { kind: 'ldap', urls: [url], bind, base } }
  draft.variables.push('LDAP_PASSWORD')
  draft.notes.push(
    ['login', 'TODO `bind`: the account of the gateway; its password is LDAP_PASSWORD, in .env.'],
    ['login', 'TODO `groups`: those that give roles. Without them nobody has one.']
  )
}

function fitting(schema: object) {
  const { pattern = '', expected } = schema as { readonly pattern?: string; expected?: string }
  const allowed = new RegExp(pattern)
  return (text: string) => (allowed.test(text) ? undefined : expected)
}

/**
 * The stages that add headers to those of the client that pass: the gateway's own, and what is
 * chosen from the client's by its value.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { GatewayError } from '../errors.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Identity, Session } from '../session/record.ts'
import { keepCookies } from './cookie-header.ts'
import type { TokenNames } from './token-names.ts'

type Headers = Record<string, string | string[]>

export interface AddingOptions {
  readonly identity: GatewayConfig['identity']
  /** Whether this upstream gets the user's identity. */
  readonly tellIdentity: boolean
  /** `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credential: string
  /** The word before the token. Without it: `Bearer` for `bearer`, none for a header. */
  readonly credentialScheme?: string | undefined
  /** The credential source whose sessions send their credential; any source without it. */
  readonly credentialFrom?: string | undefined
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  readonly tokenNames: TokenNames
  /** Whether the response will be shaped. */
  readonly shaped: boolean
}

export interface ForwardedFor {
  readonly address: string
  readonly protocol: string
  /** The request's `Host`, if config lists it; an unlisted one is not passed on. */
  readonly host: string | undefined
  readonly requestId: string
  readonly session: Session | undefined
}

/** @param headers of the client */
export type AddingStage = (
  sent: Headers,
  headers: IncomingHttpHeaders,
  caller: ForwardedFor,
  hasBody: boolean
) => void

/** The body passes byte for byte, so its length does too, even if `Connection` lists it. */
const addLength: AddingStage = (sent, headers, _caller, hasBody) => {
  const length = headers['content-length']
  if (hasBody && length !== undefined) sent['content-length'] = length
}

/** For responses that will be shaped. */
const addCodingForShape: AddingStage = sent => {
  sent['accept-encoding'] = 'identity'
}

const addAuthorization: AddingStage = (sent, { authorization }) => {
  if (authorization !== undefined) sent['authorization'] = authorization
}

/** @param names of the cookies that pass */
function addCookies(names: readonly string[]): AddingStage {
  return (sent, { cookie }) => {
    const kept = cookie === undefined ? '' : keepCookies(cookie, names)
    if (kept !== '') sent['cookie'] = kept
  }
}

const addForwarded: AddingStage = (sent, _headers, caller) => {
  sent['x-request-id'] = caller.requestId
  sent['x-forwarded-for'] = caller.address
  sent['x-forwarded-proto'] = caller.protocol
  if (caller.host !== undefined) sent['x-forwarded-host'] = caller.host
}

function addIdentity(identity: GatewayConfig['identity']): AddingStage {
  return (sent, _headers, { session }) => {
    if (session === undefined) return
    const values = identityValues(session)
    sent[identity.id] = identity.prefix ? values.prefixedId : values.id
    if (identity.source !== undefined) sent[identity.source] = values.source
    sent[identity.username] = values.username
    sent[identity.roles] = values.roles
  }
}

/**
 * The token of one back-end must not be sent to another.
 * @throws GatewayError `route.credential`
 */
function refuseOtherSources(credentialFrom: string): AddingStage {
  return (_sent, _headers, { session }) => {
    if (session !== undefined && session.source !== credentialFrom) {
      throw new GatewayError('route.credential')
    }
  }
}

/** The session's cookies, after those of the client that pass. */
const addCredentialCookies: AddingStage = (sent, _headers, { session }) => {
  const cookies = session?.credential?.cookies
  if (cookies === undefined) return
  const { cookie } = sent
  sent['cookie'] = cookie === undefined ? cookies : `${String(cookie)}; ${cookies}`
}

/** @param before the token; a blank at its end included */
function addToken(header: string, before: string): AddingStage {
  return (sent, _headers, { session }) => {
    const token = session?.credential?.token
    if (token !== undefined) sent[header] = before + token
  }
}

/** Where the route passes the client's own header, that one wins. */
function addBearer(before: string): AddingStage {
  const addTo = addToken('authorization', before)
  return (sent, headers, caller, hasBody) => {
    if (sent['authorization'] === undefined) addTo(sent, headers, caller, hasBody)
  }
}

function credentialStages(options: AddingOptions): AddingStage[] {
  const { credential, credentialScheme: scheme } = options
  const before = scheme === undefined ? '' : `${scheme} `
  if (credential.startsWith('header:')) return [addToken(credential.slice(7), before)]
  if (credential === 'bearer') return [addBearer(scheme === undefined ? 'Bearer ' : before)]
  return credential === 'cookies' ? [addCredentialCookies] : []
}

/** The stages of a route, in their order; one that is not configured is left out. */
export function addingStages(options: AddingOptions): AddingStage[] {
  const { identity, tellIdentity, credentialFrom, shaped, tokenNames } = options
  const passAuthorization = options.passAuthorization && !tokenNames.headers.has('authorization')
  const passCookies = options.passCookies.filter(name => !tokenNames.cookies.has(name))
  return [
    addLength,
    ...(shaped ? [addCodingForShape] : []),
    ...(passAuthorization ? [addAuthorization] : []),
    ...(passCookies.length > 0 ? [addCookies(passCookies)] : []),
    addForwarded,
    ...(tellIdentity ? [addIdentity(identity)] : []),
    ...(credentialFrom === undefined ? [] : [refuseOtherSources(credentialFrom)]),
    ...credentialStages(options)
  ]
}

interface IdentityValues {
  readonly id: string
  readonly prefixedId: string
  readonly source: string
  readonly username: string
  readonly roles: string
}

/** Built once for each cached session. */
const identityCache = new WeakMap<Identity, IdentityValues>()

function identityValues({ source, identity }: Session): IdentityValues {
  const cached = identityCache.get(identity)
  if (cached !== undefined) return cached
  const values = {
    id: headerValue(identity.id),
    prefixedId: headerValue(identityKey({ source, identity })),
    source: headerValue(source),
    username: headerValue(identity.username),
    roles: identity.roles.map(role => headerValue(role).replaceAll(',', '%2C')).join(',')
  }
  identityCache.set(identity, values)
  return values
}

/**
 * Printable ASCII as it is, everything else percent-encoded, also blanks at the ends, which a
 * header would lose: a name must neither break a header nor become another name.
 */
function headerValue(value: string): string {
  return /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value)
    ? value
    : encodeURIComponent(value.toWellFormed())
}

/**
 * Who reads text from outside: each reader with the inputs that cost it most, for
 * `outside-text.test.ts`, and the exceptions of the gate (`outside-text.ts`).
 */
import type { IncomingMessage } from 'node:http'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { namesTag } from '../../src/app/endpoints/shaped.ts'
import { collectMethods } from '../../src/app/endpoints/known-paths.ts'
import { CaptchaJar } from '../../src/app/hooks/captcha-jar.ts'
import type { SessionCookie } from '../../src/app/hooks/session.ts'
import { soleSession } from '../../src/app/hooks/session-cookie.ts'
import { createRanks, senderOf } from '../../src/app/overload/admission.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { readJson } from '../../src/json/body.ts'
import { orderKey } from '../../src/json/decimal.ts'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { readErrorBody } from '../../src/json/error-body.ts'
import { jsonFault } from '../../src/json/json-fault.ts'
import { isPoisoned } from '../../src/json/poisoned.ts'
import { holdsCredential } from '../../src/login/leaked-credential.ts'
import { cookiesIn, LoginResponse } from '../../src/login/login-response.ts'
import { formatFor } from '../../src/observability/metrics-text.ts'
import {
  escapeInJson,
  printable,
  printableLines,
  showInJson
} from '../../src/observability/unprintable.ts'
import { readTraceSettings } from '../../src/observability/traces/settings.ts'
import { readTraceparent, readTracestate } from '../../src/observability/traces/trace-context.ts'
import { freshnessOf, variesBy } from '../../src/proxy/freshness.ts'
import { joinedVary, requestHeaders } from '../../src/proxy/headers.ts'
import { mapBody } from '../../src/proxy/body-mapping.ts'
import { compileQuery } from '../../src/proxy/query.ts'
import { checkTarget, createRewrite } from '../../src/proxy/path.ts'
import { createReplicaSeal } from '../../src/services/replica-seal.ts'
import { createSeal } from '../../src/session/seal.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'
import { readHandshake } from '../../src/proxy/websocket/handshake.ts'

interface Reader {
  /** The functions that it runs, as the gate names them. */
  readonly of: readonly string[]
  readonly read: (text: string) => unknown
  /** Texts of that length, by what makes them costly. */
  readonly worst: Readonly<Record<string, (length: number) => string>>
}

const repeated =
  (letters: string) =>
  (length: number): string =>
    letters.repeat(length / letters.length)
const within =
  (start: string, letters: string, end: string) =>
  (length: number): string =>
    start + repeated(letters)(length) + end
const listOf = (length: number): string =>
  Array.from({ length: length / 8 }, (_, index) => `x${index}`).join(',')

const app = Fastify()
const known = collectMethods(app)
for (const url of ['/api/*', '/api/orders/*', '/api/orders/:id/items', '/*']) {
  app.route({ method: 'GET', url, config: { route: 'r', access: 'public' }, handler: () => '' })
}
await app.ready()

const replicaSeal = createReplicaSeal(['x'.repeat(32), 'y'.repeat(32)])
const captchaJar = new CaptchaJar({
  upstream: 'b',
  names: ['sid'],
  seal: createSeal(['x'.repeat(32)], 'captcha-cookie'),
  cookie: { options: { path: '/', sameSite: 'strict' } } as SessionCookie
})
const cookieSignIn = new LoginResponse({ cookies: ['sid'] } as UpstreamLoginConfig, {
  status: 200,
  headers: { 'set-cookie': 'sid=1' },
  body: Buffer.from('{}')
})
const noTokens = { tokenHeaders: [], tokenCookies: [], tokenQuery: [] }
const toFields = requestHeaders({
  identity: { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles', prefix: false },
  tellIdentity: false,
  credential: 'none',
  passAuthorization: false,
  passCookies: ['b'],
  tokenNames: tokenNamesOf(noTokens),
  shaped: false
})
const caller = {
  address: '',
  protocol: 'http',
  host: 'h',
  requestId: 'r',
  session: undefined
} as const
const fieldsOf = (headers: Record<string, string>) => toFields(headers, caller, false, true)
const rewrite = createRewrite(['/api/*', '/api/orders/*'], '/v1/*', '/base')
const template = createRewrite(['/api/:id/*', '/api/:id/lines/*'], '/v1/:id/*', '/base')
const toQuery = compileQuery({
  rename: { a: 'b' },
  set: { tenant: '5' },
  paging: { page: 'page', firstPage: 1, to: { page: 'p', firstPage: 0 } }
})
const { query: tokenQuery } = tokenNamesOf({ ...noTokens, tokenQuery: ['token'] })
const mapping = { maxBytes: 1000, shape: (body: unknown) => body }
const checkCookies = soleSession({ name: 'sid' })
const rankOf = createRanks(loadConfig('config', {}), ['x'.repeat(32)])

const handshakeOf = (list: string): Parameters<typeof readHandshake>[0] =>
  ({
    method: 'GET',
    headers: {
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': list,
      'sec-websocket-extensions': list
    }
  }) as never

/** What fails says so too, and costs no more. */
const tried = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    return error
  }
}

export const readers: readonly Reader[] = [
  {
    of: ['src/services/replica-seal.ts#open', 'src/services/replica-seal.ts#isForeign'],
    read: text => replicaSeal.open('question', text) ?? replicaSeal.isForeign(text),
    worst: {
      'blanks': repeated(' '),
      'one long copy': within('abcdef.', 'A', ''),
      'a copy that almost fits': within('abcdef.', 'A', '!'),
      'many copies': repeated(`abcdef.${'A'.repeat(40)} `)
    }
  },
  {
    of: [
      'src/observability/traces/settings.ts#exportingOf',
      'src/observability/traces/settings.ts#headersOf',
      'src/observability/traces/settings.ts#pairsOf'
    ],
    read: text =>
      readTraceSettings(
        {
          OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example',
          OTEL_EXPORTER_OTLP_HEADERS: text,
          OTEL_RESOURCE_ATTRIBUTES: text,
          OTEL_TRACES_EXPORTER: `otlp,${text}`
        },
        '/',
        ''
      ),
    worst: {
      'commas': repeated(','),
      'signs': repeated('='),
      'blanks': within('a=b', ' ', 'c'),
      'a long value': within('a=', 'b', ''),
      'pairs': repeated('a=1234,')
    }
  },
  {
    of: ['src/observability/traces/trace-context.ts#readTracestate'],
    read: text => [readTraceparent(text), readTracestate(text)],
    worst: {
      'commas': repeated(','),
      'blanks': within('a=b', ' ', 'c'),
      'a long value': within('a=', 'b', ''),
      'a long key': repeated('a'),
      'members': listOf,
      'a later version': within(`cc-${'1'.repeat(32)}-${'1'.repeat(16)}-01`, '-', '')
    }
  },
  {
    of: ['src/proxy/websocket/handshake.ts#listOf'],
    read: list => tried(() => readHandshake(handshakeOf(list))),
    worst: {
      commas: repeated(','),
      names: listOf,
      blanks: within('a', ' ', 'b'),
      parameters: repeated('permessage-deflate; a=b;')
    }
  },
  {
    of: ['src/json/digits.ts#hasLongNumber', 'src/json/digits.ts#significant'],
    read: parseKeepingDigits,
    worst: {
      'digits in a text': within('"', '7', '"'),
      'dots in a text': within('"', '.', '"'),
      'words of digits': within('"', '12345678901234567 ', '"'),
      'exponents in a text': within('"', '1e999', '"'),
      'runs before exponents': within('"', '11111111111e111', '"'),
      'a number of zeros': within('0.', '0', ''),
      'a number of zeros before a digit': within('[1.', '0', '1]'),
      'long numbers': within('[', '12345678901234567890,', '1]')
    }
  },
  {
    of: [
      'src/json/json-fault.ts#jsonFault',
      'src/json/json-fault.ts#stringEnd',
      'src/json/json-fault.ts#placeOf'
    ],
    read: jsonFault,
    worst: {
      'open lists': repeated('['),
      'open objects': repeated('{"a":'),
      'blanks': repeated(' '),
      'lines': within('[', '\n', '!'),
      'digits': repeated('1'),
      'escapes': within('"', '\\n', ''),
      'quotation marks': within('[', '"",', '')
    }
  },
  {
    of: ['src/json/coding.ts#codingsOf'],
    read: text => tried(() => readJson(Buffer.from('{}'), { 'content-encoding': text }, 1000)),
    worst: { codings: repeated('x,'), blanks: within('a', ' ', 'b') }
  },
  {
    of: [],
    read: text => tried(() => readJson(Buffer.from('{}'), { 'content-type': text }, 1000)),
    worst: {
      'semicolons': within('a/b', ';', ''),
      'blanks before a charset': within('a/b', '; ', 'charset'),
      'charsets': within('a/b', ';charset', '')
    }
  },
  {
    of: [],
    read: text => isPoisoned(text, null),
    worst: {
      'half a name': repeated('__proto_'),
      'escapes': repeated('\\'),
      'half a word': repeated('constructo')
    }
  },
  {
    of: ['src/json/decimal.ts#orderKey'],
    read: orderKey,
    worst: {
      'zeros before': within('', '0', '1'),
      'zeros behind': within('1.', '0', '1'),
      'negative': within('-0.', '12', ''),
      'dots': repeated('1.')
    }
  },
  {
    of: ['src/proxy/cookie-header.ts#keepCookies', 'src/proxy/cookie-header.ts#trimBlanks'],
    read: text => fieldsOf({ cookie: text }),
    worst: {
      'blanks before a cookie': within('a', ' ', 'b=1'),
      'tabs in a pair': within('b=1', '\t', 'x'),
      'cookies': repeated('b=1;'),
      'semicolons': repeated(';'),
      'equal signs': repeated('=')
    }
  },
  {
    of: ['src/proxy/headers.ts#listedIn'],
    read: text => fieldsOf({ connection: text, a: '1', b: '2', c: '3' }),
    worst: { names: listOf, blanks: within('a', ' ', 'b'), commas: repeated(',') }
  },
  {
    of: [
      'src/proxy/freshness.ts#directivesOf',
      'src/proxy/freshness.ts#hasToken',
      'src/proxy/freshness.ts#variesBy'
    ],
    read: text => {
      const headers = { 'cache-control': text, 'vary': text }
      return [freshnessOf(headers, 0, 0), variesBy(headers, new Set(['pragma']))]
    },
    worst: {
      blanks: within('x', ' ', 'x'),
      commas: repeated(','),
      equals: repeated('='),
      quotes: within('max-age=', '"', 'x'),
      names: listOf
    }
  },
  {
    of: ['src/proxy/headers.ts#joinedVary'],
    read: text => joinedVary(text, text),
    worst: { names: listOf, blanks: within('a', ' ', 'b'), commas: repeated(',') }
  },
  {
    of: [
      'src/app/endpoints/known-paths.ts#methodsAt',
      'src/app/endpoints/known-paths.ts#collectMethods'
    ],
    read: known.methodsAt,
    worst: {
      'slashes': repeated('/'),
      'short segments': within('/nope', '/a', ''),
      'below a known path': within('/api/orders', '/a', '/items'),
      'questions': within('/a', '?', '')
    }
  },
  {
    of: ['src/proxy/path.ts#toUpstream'],
    read: text => tried(() => rewrite.toUpstream(text)),
    worst: { slashes: within('/api', '/a', ''), questions: within('/api/a', '?', '') }
  },
  {
    of: [
      'src/proxy/query.ts#parse',
      'src/proxy/query.ts#nameOf',
      'src/proxy/query.ts#withoutHidden'
    ],
    read: text => tried(() => toQuery(`?${text}`)),
    worst: {
      'parameters': repeated('a=b&'),
      'paged names': repeated('page&'),
      'ands': repeated('&'),
      'escapes': within('a=', '%', ''),
      'blanks': within('', '+', '='),
      'semicolons': within('a=', ';tenant=', ''),
      'brackets': within('a', '[', '=1')
    }
  },
  {
    of: [
      'src/proxy/token-names.ts#strip',
      'src/proxy/lenient-names.ts#hasNameOf',
      'src/proxy/lenient-names.ts#unescaped',
      'src/proxy/lenient-names.ts#leniently'
    ],
    read: text => tokenQuery?.strip(`?${text}`),
    worst: {
      parameters: repeated('a=b&'),
      semicolons: repeated(';'),
      escapes: within('', '%74', '=x'),
      brackets: within('', '[', '=x'),
      blanks: within('', '+', 'a=x'),
      dots: within('', '.', 'a=x')
    }
  },
  {
    of: ['src/proxy/body-mapping.ts#typeOf'],
    read: text =>
      void mapBody(Buffer.from('{}'), { 'content-type': text }, mapping).catch(() => {}),
    worst: { semicolons: repeated(';'), blanks: within('a', ' ', 'b'), pluses: repeated('a+') }
  },
  {
    of: ['src/proxy/path.ts#valuesOf', 'src/proxy/path.ts#fill'],
    read: text => tried(() => template.toUpstream(text)),
    worst: {
      'slashes': within('/api', '/a', ''),
      'names': within('/api', '/:id', ''),
      'one segment': within('/api/', 'a', '/x')
    }
  },
  {
    of: [],
    read: text =>
      tried(() => {
        checkTarget(text)
      }),
    worst: {
      slashes: within('', '/a', '//'),
      dots: within('/', '.', '/'),
      escapes: within('/', '%25', '%2'),
      query: within('/?', 'a', '#')
    }
  },
  {
    of: ['src/app/overload/admission.ts#createRanks', 'src/proxy/cookie-header.ts#cookieValue'],
    read: text => {
      const headers = { 'x-forwarded-for': text, 'cookie': text }
      const request = {
        socket: {},
        headers,
        method: 'POST',
        url: text
      } as unknown as IncomingMessage
      senderOf(request, () => true)
      return rankOf(request)
    },
    worst: {
      'addresses': repeated('1,'),
      'commas': repeated(','),
      'cookies': repeated('console_sid=1;'),
      'one long cookie': within('console_sid=', 'x', ''),
      'one long cookie with escapes': within('console_sid=', '%41', ''),
      'queries': repeated('?')
    }
  },
  {
    of: ['src/app/hooks/session-cookie.ts#refuseTwoSessions'],
    read: text => {
      checkCookies({ headers: { cookie: text } } as FastifyRequest, {} as FastifyReply, () => {})
    },
    worst: {
      'names': repeated('sid '),
      'blanks': within('sid=1;', ' ', 'sid'),
      'semicolons': within('sid', ';', 'sid'),
      'equal cookies': repeated('sid=1;'),
      'other cookies': within('sid=1', ';\t', ';sid=1')
    }
  },
  {
    of: [
      'src/observability/unprintable.ts#escapeInJson',
      'src/observability/unprintable.ts#showInJson',
      'src/observability/unprintable.ts#printable',
      'src/observability/unprintable.ts#printableLines'
    ],
    read: text => [escapeInJson(text), showInJson(text), printable(text), printableLines(text)],
    worst: { 'marks of direction': repeated('\u202e'), 'controls': repeated('\u0085\u0007') }
  },
  {
    of: ['src/login/login-response.ts#cookiesIn'],
    read: text => cookiesIn([text, text], ['sid']),
    worst: {
      'semicolons': repeated(';'),
      'equal signs': repeated('='),
      'blanks': within('sid', ' ', '=1')
    }
  },
  {
    of: [
      'src/login/login-response.ts##cookies',
      'src/app/hooks/captcha-jar.ts#read',
      'src/app/hooks/captcha-jar.ts#write'
    ],
    read: text => [
      cookieSignIn.credential(text),
      captchaJar.read({ cookies: { console_captcha_b: text } }),
      captchaJar.write(text, 'sid=1')
    ],
    worst: {
      'pairs': repeated('sid=b; '),
      'equal signs': repeated('='),
      'semicolons': repeated('; ')
    }
  },
  {
    of: ['src/login/leaked-credential.ts#cookieTexts'],
    read: cookies => holdsCredential(cookies, { cookies: `${cookies}1` }),
    worst: {
      'pairs': repeated('a=b; '),
      'equal signs': repeated('='),
      'blanks': repeated(' ')
    }
  },
  {
    of: ['textAt', 'collect', 'nameAt', 'fromPointer', 'add', 'addMembers', '#nameOf'].map(
      name => `src/json/error-body.ts#${name}`
    ),
    read: text => {
      const error = { name: text, detail: text, pointer: `/${text}` }
      readErrorBody(
        { [text]: { [text]: Array.from({ length: 100 }, () => ({ [text]: [text] })) } },
        'drf'
      )
      return readErrorBody({ errors: Array.from({ length: 100 }, () => error) }, 'problem')
    },
    worst: { slashes: repeated('/'), tildes: repeated('~1'), dots: repeated('.') }
  },
  {
    of: ['src/app/endpoints/shaped.ts#namesTag'],
    read: text => namesTag(text, '"tag"'),
    worst: { tags: repeated('W/"a",'), blanks: within('"', ' ', '"') }
  },
  {
    of: ['src/observability/metrics-text.ts#formatFor'],
    read: formatFor,
    worst: {
      types: repeated('text/plain,'),
      parameters: within('application/openmetrics-text', ';q=', '1'),
      blanks: repeated(' ')
    }
  }
]

/** Patterns that are not linear, by where they stand, and why nobody outside can use that. */
export const patterns: Readonly<Record<string, string>> = {
  'src/cli/limits/access-lines.ts#module':
    'a line of a log that an operator has, in a command of his own',
  'src/cli/limits/picture.ts#figure': 'a number of a report',
  'src/cli/limits/simulate.ts#figure': 'a number of a report',
  'src/config/check/paths.ts#module': 'names of config',
  'src/config/schema/faults.ts#faultOfKey': 'names of config',
  'src/config/schema/header-names.ts#module': 'names of config',
  'src/json-schema/compile.ts#schemaProblems': 'a message about a contract, which is config',
  'src/config/schema/primitives.ts#measured': 'values of config',
  'src/config/load/references.ts#module': 'values of config',
  'src/config/schema/visit.ts#memberSchema': 'patterns of our own schemas',
  'src/app/endpoints/console.ts#module': 'the path of a file that is there: at most 4096 letters',
  'src/app/hooks/session-cookie.ts#soleSession':
    'made of the name of a cookie; reading with it is measured',
  'src/process/server/uncaught.ts#module': 'the stack of an error'
}

/** Who parses JSON by itself, and why no id can lose its digits there. */
export const parsers: Readonly<Record<string, string>> = {
  'src/cli/limits/access-lines.ts#parseFields': 'lines of our own log, where ids are texts',
  'src/json-schema/plain-value.ts#plain': 'our own value, written for a schema that takes numbers',
  'src/limits/usage/redis-usage.ts#parsed': 'our own record of counts',
  'src/process/server/uncaught.ts#isOfPackage': 'a package.json',
  'src/session/redis-index.ts#readSignedIn': 'our own list, whose ids are texts'
}

/** Who takes text apart without being measured, and whose text it is. */
export const exempt: Readonly<Record<string, string>> = {
  'src/admin/caller-limits.ts#ruleOf': 'a key of our own counters',
  'src/app/hooks/address.ts#createTrust':
    'blocks of config; of an address only what stands before a %',
  'src/app/hooks/known-browser.ts#read': 'a cookie that we signed, at most 1000 letters',
  'src/limits/counting/redis-callers.ts#keysOf': 'keys of our own counters',
  'src/limits/counting/redis-callers.ts#look': 'our own notes of resets',
  'src/limits/counting/forget-subject.ts#forgetSubject': 'keys of our own counters',
  'src/limits/usage/whom.ts#callersOf': 'keys of our own record',
  'src/login/back-end-call.ts#fillText': 'a template of config',
  'src/login/login-response.ts##valuesAt': 'a path of config',
  'src/process/cluster/merge-metrics.ts#mergeTexts': 'metrics of our own workers',
  'src/process/cluster/merge-metrics.ts#withLabels': 'metrics of our own workers',
  'src/node-version.js#module': 'the version of Node',
  'src/process/server/uncaught.ts#hasOwnFrame': 'the stack of an error',
  'src/shaping/convert.ts#conversion': 'a word of config',
  'src/shaping/shape.ts#compileStep': 'a path of config',
  'src/shaping/shape.ts#paging': 'a path of config',
  'src/shaping/status.ts#compileStatus': 'a path of config',
  'src/app/compile-parts.ts#compileParts': 'a path of config',
  'src/services/redis-sentinels.ts#flagsOf': 'what a Sentinel says',
  'src/session/redis-invalidation.ts##announce': 'keys that we gave Redis',
  'src/session/seal.ts#open': 'a record that we sealed'
}

/** Learns the schemas of the gateway's own responses from examples of them. */
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import { profilePlacement } from '../config/schema/resolved.ts'
import { learnSchema } from '../contract/learn.ts'
import { isSchema, type JsonSchema } from '../contract/schema.ts'
import { GatewayError } from '../errors/errors.ts'
import { describeLive, describeSession, timeLeft } from '../session/describe.ts'
import type { Live } from '../session/evaluate.ts'
import { createAnswer } from '../shaping/answer.ts'
import { fillCurrentUser } from '../shaping/current-user.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'

const times = { now: 0, aheadMs: 0 }

const live: Live = {
  key: '',
  idleEnd: 0,
  session: {
    id: 'a1b2c3',
    identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
    source: 'users-file',
    remembered: false,
    createdAt: 0,
    absoluteEnd: 0,
    idleMs: 0,
    address: '203.0.113.7',
    agent: 'Mozilla/5.0'
  }
}

/** The schema of a success, whose value is described by `data`. */
export function successSchema(
  { success, dataName }: Envelope,
  data: JsonSchema,
  placement: AnswerConfig['inEnvelope'] = 'data'
): JsonSchema {
  if (placement === 'none') return data
  const learned = learnSchema([success(dataName === false ? {} : 'value', undefined, placement)])
  if (placement === 'flat' || dataName === false) return { allOf: [learned, data] }
  return withMember(learned, dataName, data)
}

/** The members that errors have; what only some of them have is not required. */
export function failureSchema({ failure }: Envelope, codes: readonly string[]): JsonSchema {
  const errors = [
    new GatewayError('session.none'),
    new GatewayError('upstream.error', {
      status: 400,
      fieldErrors: { 1: ['text'] },
      extra: { code: 7 }
    }),
    new GatewayError('maintenance', { extra: { until: '2026-12-01T14:00+08:00' } })
  ]
  const samples = errors.map(error => failure(error, 'id'))
  const [first = {}] = samples
  const codeName = Object.keys(first).find(name => first[name] === 'session.none')
  const learned = learnSchema(samples)
  if (codeName === undefined) return learned
  return withMember(learned, codeName, { type: 'string', enum: codes })
}

function withMember(schema: JsonSchema, name: string, member: JsonSchema): JsonSchema {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {}
  return { ...schema, properties: { ...properties, [name]: member } }
}

/** The bodies of the gateway's own endpoints, in the envelope. */
export function ownSchemas(config: Config) {
  const { gateway, routes } = config
  const envelope = createEnvelope(gateway.envelope)
  const { login, logout, profile, refresh } = routes.endpoints
  /** An answer that config writes, else the usual one. */
  const answered = (written: AnswerConfig | undefined, usual: () => JsonSchema): JsonSchema => {
    if (written === undefined) return usual()
    const { render, placement } = createAnswer(config, written)
    const value = render({ ...live, ...times, profile: {} })
    return successSchema(envelope, loose(learnSchema([value])), placement)
  }
  const learned = (value: unknown) => () => successSchema(envelope, learnSchema([value]))
  const left = timeLeft(live, times.now)
  // An id may be a number where the back-end's is one.
  const filled = withMember(learnSchema([fillCurrentUser({}, live.session.identity)]), 'id', {})
  const user = envelope.fillsUser ? filled : {}
  const placement = profilePlacement(routes)
  return {
    login: answered(login.answer, () =>
      learnSchema([envelope.login({ type: 'account', authority: 'admin' })])
    ),
    logout: answered(logout.answer, learned({})),
    profile: answered(profile.answer, () => successSchema(envelope, user, placement)),
    refresh: answered(refresh?.answer, learned(left)),
    session: learned(left)(),
    extend: learned(left)(),
    list: learned([{ ...describeSession(describeLive(live), times), current: true }])(),
    close: learned({ closed: 1 })(),
    check: undefined
  }
}

/** Without types of nulls: the sample's profile is empty, so a template got null for any value. */
function loose(schema: JsonSchema): JsonSchema {
  const rewrite = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewrite)
    if (!isSchema(value)) return value
    if (value['type'] === 'null') return {}
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rewrite(inner)]))
  }
  return rewrite(schema) as JsonSchema
}

/**
 * Refuses hooks that some responses would bypass. `sendBody` writes whole bodies past Fastify's own
 * sending, so onSend and preSerialization hooks do not run for them: such a hook would silently
 * work for some responses and not for others.
 */
import type { FastifyInstance } from 'fastify'

const bypassed = new Set(['onSend', 'preSerialization'])

/** onSend hooks, by their functions' names, whose effect `sendBody` has by itself. */
const doneBySendBody = new Set([
  // It takes `reply.standardHeaders`.
  'fillStandardHeaders',
  // It calls `limitStall`.
  'limitStreams',
  // @fastify/cookie writes the reply's cookies: a route of an upstream sets none.
  'fastifyCookieOnSendHandler'
])

type AddHook = (
  this: FastifyInstance,
  name: string,
  hook: { readonly name: string }
) => FastifyInstance

/**
 * To be called before any hook is added.
 * @returns marks a scope whose routes use `sendBody`, before they are added; it throws, as adding a
 * hook does from then on, where a hook would be bypassed
 */
export function refuseBypassedHooks(app: FastifyInstance): (scope: FastifyInstance) => void {
  const { addHook } = app as unknown as { readonly addHook: AddHook }
  const hooked: FastifyInstance[] = []
  const direct: FastifyInstance[] = []
  const addChecked: AddHook = function (name, hook) {
    if (bypassed.has(name) && !doneBySendBody.has(hook.name)) {
      hooked.push(this)
      if (direct.some(scope => areNested(scope, this))) throw bypassedError(name)
    }
    return addHook.call(this, name, hook)
  }
  // Scopes inherit from the app, so this is their `addHook` too.
  app.addHook = addChecked as unknown as FastifyInstance['addHook']

  return scope => {
    if (hooked.some(hookedScope => areNested(hookedScope, scope))) throw bypassedError('onSend')
    direct.push(scope)
    scope.addHook('onRoute', ({ onSend, preSerialization }) => {
      if (onSend !== undefined) throw bypassedError('onSend')
      if (preSerialization !== undefined) throw bypassedError('preSerialization')
    })
  }
}

/** Whether one scope is the other, or one within the other. */
function areNested(a: FastifyInstance, b: FastifyInstance): boolean {
  const isWithin = (inner: FastifyInstance, outer: FastifyInstance) =>
    inner === outer || Object.prototype.isPrototypeOf.call(outer, inner)
  return isWithin(a, b) || isWithin(b, a)
}

function bypassedError(name: string): Error {
  return new Error(
    `An ${name} hook would not run for responses that are sent by sendBody. ` +
      'Do its work there too, and list it in src/app/hooks/bypassed-hooks.ts.'
  )
}

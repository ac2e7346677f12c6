/**
 * Gates: hooks that may refuse a request, each with the step that it decides. They are declared as
 * the app is built, so requests pay nothing; dry runs trace the gates by their steps.
 */
import type { onRequestHookHandler } from 'fastify'

export type GateStep = 'request' | 'session' | 'origin' | 'limits' | 'access' | 'maintenance'

const steps = new WeakMap<object, GateStep>()

/** Declares a hook as a gate. @returns the hook itself */
export function gate<H extends onRequestHookHandler>(step: GateStep, hook: H): H {
  steps.set(hook, step)
  return hook
}

/** @returns undefined for a hook that is no gate */
export const stepOfGate = (hook: object): GateStep | undefined => steps.get(hook)

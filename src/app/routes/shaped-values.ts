/** Applies a route's shape to a value, and checks the result against its contract. */
import type { Contract } from '../../contract/contract.ts'
import type { Shape } from '../../shaping/shape.ts'

/** @throws GatewayError when the back-end's body reports an error */
export function applyShape(shape: Shape, body: unknown): unknown {
  const refusal = shape.refusal(body)
  if (refusal !== undefined) throw refusal
  return shape.apply(body)
}

/** @throws GatewayError when the response breaks a strict contract */
export function checkContract(contract: Contract | undefined, answer: unknown): unknown {
  if (contract === undefined) return answer
  contract(() => answer)
  return answer
}

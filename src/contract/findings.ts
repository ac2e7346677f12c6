/** A contract that a thread checks: its findings travel to the event loop, which counts them. */
import { compileSchema, type Deviation } from '../json-schema/compile.ts'
import { type Contract, type ContractRules, createContract } from './contract.ts'
import { deviationsOf, type Drift } from './drift.ts'

/** Of one response. */
export interface Findings {
  /** Undefined where it was not observed. */
  readonly deviations?: readonly Deviation[]
  /** The deviation for which a strict contract refused it. */
  readonly refusal?: Deviation
}

/** @returns the contract, and its findings since they were last taken */
export function createFindingContract(rules: ContractRules): [Contract, take: () => Findings] {
  let findings: Findings = {}
  const contract = createContract({
    ...rules,
    route: '',
    drift: {
      look: (_route, schema, read) => {
        findings = { ...findings, deviations: deviationsOf(schema, read) }
      },
      broken: (_route, _schema, refusal) => {
        findings = { ...findings, refusal }
      }
    }
  })
  const take = () => {
    const taken = findings
    findings = {}
    return taken
  }
  return [contract, take]
}

export function reportFindings(
  drift: Pick<Drift, 'checked' | 'broken'>,
  route: string,
  { schema }: ContractRules,
  { deviations, refusal }: Findings
): void {
  const compiled = compileSchema(schema)
  if (deviations !== undefined) drift.checked(route, compiled, deviations)
  if (refusal !== undefined) drift.broken(route, compiled, refusal)
}

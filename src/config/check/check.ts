/** Rules between keys and between files. Pure: every fault is reported, nothing is read or changed. */
import { checkAdvice } from './advice.ts'
import { checkAnswers } from './answers.ts'
import { checkBackEndTokens } from './back-end-tokens.ts'
import { checkContracts } from './contracts.ts'
import { checkEnvelope } from './envelope.ts'
import { checkGateway } from './gateway.ts'
import { checkLimits } from './limits.ts'
import { checkNames } from './names.ts'
import { checkParts } from './parts.ts'
import { checkPaths } from './paths.ts'
import { checkReferences } from './references.ts'
import type { CheckedConfig, Report } from './report.ts'
import { checkShapes } from './shapes.ts'
import { checkSources } from './sources.ts'
import { checkTls } from './tls.ts'
import { checkUpstreams } from './upstreams.ts'

const rules = [
  checkReferences,
  checkGateway,
  checkTls,
  checkEnvelope,
  checkSources,
  checkBackEndTokens,
  checkNames,
  checkUpstreams,
  checkPaths,
  checkParts,
  checkAnswers,
  checkShapes,
  checkContracts,
  checkLimits,
  checkAdvice
]

/** @param config fits its schema */
export function checkConfig(config: CheckedConfig, report: Report): void {
  for (const rule of rules) rule(config, report)
}

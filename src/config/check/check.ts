/** Rules between keys and between files. Pure: every fault is reported, nothing is read or changed. */
import { checkOps } from './admin.ts'
import { checkAnswers } from './answers.ts'
import { checkAudit } from './audit.ts'
import { checkAuthorities } from './authorities.ts'
import { checkClashes } from './clashes.ts'
import { checkContracts } from './contracts.ts'
import { checkDeployment } from './deployment.ts'
import { checkEnvelope } from './envelope.ts'
import { checkExpectations } from './expectations.ts'
import { checkFields } from './fields.ts'
import { checkInstall } from './install.ts'
import { checkLimits } from './limits.ts'
import { checkOperation } from './operation.ts'
import { checkParts } from './parts.ts'
import { checkPaths } from './paths.ts'
import { checkReach } from './reach.ts'
import type { CheckedConfig, Report } from './report.ts'
import { checkRefreshCodes } from './refresh-codes.ts'
import { checkRequestMapping } from './request-mapping.ts'
import { checkServerTls } from './server-tls.ts'
import { checkSession } from './session.ts'
import { checkSignIn } from './sign-in.ts'
import { checkShapes } from './shapes.ts'
import { checkSources } from './sources.ts'
import { checkTokenNames } from './token-names.ts'
import { checkUpstreams } from './upstreams.ts'
import { checkWithoutEffect } from './without-effect.ts'

const rules = [
  checkSession,
  checkInstall,
  checkServerTls,
  checkOps,
  checkAudit,
  checkEnvelope,
  checkDeployment,
  checkSources,
  checkSignIn,
  checkUpstreams,
  checkAuthorities,
  checkFields,
  checkTokenNames,
  checkRefreshCodes,
  checkPaths,
  checkRequestMapping,
  checkClashes,
  checkParts,
  checkAnswers,
  checkWithoutEffect,
  checkShapes,
  checkContracts,
  checkLimits,
  checkReach,
  checkExpectations,
  checkOperation
]

/** @param config fits its schema */
export function checkConfig(config: CheckedConfig, report: Report): void {
  for (const rule of rules) rule(config, report)
}

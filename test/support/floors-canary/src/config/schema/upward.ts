/** Canary: an import upward, which the gate must refuse. */
import { app } from '../../app/app.ts'

export const upward = app

/** Every console with the envelope of every other family, which it does not understand. */
import { failWithOthers } from '../matrix/preset-drivers.ts'

failWithOthers(others => others)

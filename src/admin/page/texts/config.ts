/** Texts of the panel Config. */

export const configTexts = {
  'config.title': 'Config',
  'config.running': 'What runs',
  'config.generation': 'Generation',
  'config.taken': 'Taken',
  'config.folder': 'Folder',
  'config.hash': 'Hash',
  'config.lastChange': 'The last change',
  'config.files': 'The files',
  'config.same': 'The files hold what runs.',
  'config.differ': 'The files differ from what runs',
  'config.restart': 'A restart brings',
  'config.risks': 'Mind this',
  'config.refused': 'The files were refused; the last good config runs.',
  'config.rolledBack':
    'Since a rollback another config runs than the files hold. A reload or restart takes those.',
  'config.revisions': 'Revisions',
  'config.of': 'config of #{number}',
  'config.diff': 'Diff of #{number}',
  'config.noDiff': 'It is what runs.',
  'config.rollBack': 'Roll back to #{number}',
  'config.rollBackText':
    'Runs the config of revision #{number} ({time}) again, at all replicas or at none. ' +
    'Keys of gateway.yaml stay as they run.',
  'config.reload': 'Reload the files',
  'config.reloadText': 'Reads the config files, checks them, and runs them if they have no fault.',
  'config.expectations': 'Expectations',
  'config.expectation': 'Expectation',
  'config.noExpectations': 'The config states none.',
  'config.met': 'met',
  'config.notMet': 'not met',
  'config.contracts': 'Contracts',
  'config.noContracts': 'The config states none.',
  'config.drift': 'Drift',
  'config.noDrift': 'none',
  'config.checked': 'Checked',
  'trigger.start': 'at start',
  'trigger.files changed': 'files changed',
  'trigger.operator': 'by an operator',
  'trigger.rollback': 'rollback',
  'trigger.SIGHUP': 'signal SIGHUP'
} as const

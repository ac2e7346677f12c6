/** Texts of the panel Config. */

export const configTexts = {
  'config.title': ['Config', '配置'],
  'config.running': ['What runs', '运行中的配置'],
  'config.generation': ['Generation', '代次'],
  'config.taken': ['Taken', '生效'],
  'config.folder': ['Folder', '目录'],
  'config.hash': ['Hash', '哈希'],
  'config.lastChange': ['The last change', '最近的变更'],
  'config.files': ['The files', '配置文件'],
  'config.same': ['The files hold what runs.', '配置文件与运行中的配置一致。'],
  'config.differ': ['The files differ from what runs', '配置文件与运行中的配置不同'],
  'config.restart': ['A restart brings', '重启后将生效'],
  'config.risks': ['Mind this', '请注意'],
  'config.refused': [
    'The files were refused; the last good config runs.',
    '配置文件被拒绝，仍在运行上一个有效配置。'
  ],
  'config.rolledBack': [
    'Since a rollback another config runs than the files hold. A reload or restart takes those.',
    '回滚后运行的配置与文件不同。重新加载或重启会使用文件中的配置。'
  ],
  'config.revisions': ['Revisions', '版本'],
  'config.of': ['config of #{number}', '来自 #{number} 的配置'],
  'config.diff': ['Diff of #{number}', '#{number} 的差异'],
  'config.noDiff': ['It is what runs.', '与运行中的配置相同。'],
  'config.rollBack': ['Roll back to #{number}', '回滚到 #{number}'],
  'config.rollBackText': [
    'Runs the config of revision #{number} ({time}) again, at all replicas or at none. ' +
      'Keys of gateway.yaml stay as they run.',
    '重新运行版本 #{number}（{time}）的配置：全部副本一起回滚，或都不回滚。gateway.yaml 的配置项保持不变。'
  ],
  'config.reload': ['Reload the files', '重新加载文件'],
  'config.reloadText': [
    'Reads the config files, checks them, and runs them if they have no fault.',
    '读取并检查配置文件，没有错误时开始运行。'
  ],
  'config.expectations': ['Expectations', '期望'],
  'config.expectation': ['Expectation', '期望'],
  'config.noExpectations': ['The config states none.', '配置中没有期望。'],
  'config.met': ['met', '满足'],
  'config.notMet': ['not met', '未满足'],
  'config.contracts': ['Contracts', '契约'],
  'config.noContracts': ['The config states none.', '配置中没有契约。'],
  'config.drift': ['Drift', '偏差'],
  'config.noDrift': ['none', '无'],
  'config.checked': ['Checked', '已检查'],
  'trigger.start': ['at start', '启动时'],
  'trigger.files changed': ['files changed', '文件变化'],
  'trigger.operator': ['by an operator', '运维人员'],
  'trigger.rollback': ['rollback', '回滚'],
  'trigger.SIGHUP': ['signal SIGHUP', '信号 SIGHUP']
} as const

# Prints what lkp-tests' own comparison says of two matrix.json files, every stat.
# usage: LKP_SRC=DIR ruby record.rb BEFORE AFTER
require 'json'
LKP_SRC = ENV.fetch('LKP_SRC')
require "#{LKP_SRC}/lib/compare"
# A result root whose matrix is a file.
Root = Struct.new(:axes, :matrix) do
  def complete_matrix(matrix) = matrix
end
roots = ARGV.map { |file| Root.new({ 'commit' => File.basename(file, '.json') }, JSON.parse(File.read(file))) }
comparer = Compare::Comparer.new
comparer.set_mresult_roots(roots).set_compare_axis_keys(['commit']).set_sort_mresult_roots(false).set_use_all_stat_keys(true)
comparer.compare

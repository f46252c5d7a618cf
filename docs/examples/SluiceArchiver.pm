# A plugin of pt-archiver that asks Sluice before each chunk, for an archiver that writes around Sluice:
#
#   SLUICE_CHECK='http://127.0.0.1:9307/throttler/check?app=pt-archiver' PERL5LIB=/where/this/is \
#     pt-archiver --source h=db1,D=shop,t=carts,m=SluiceArchiver --purge --where '…' --limit 500 --bulk-delete
#
# With --bulk-delete a chunk is one statement, and is asked for. Without, a row is: then it asks at most each
# 100 ms. Anything but 200 waits; no answer at all waits too, and says so once a minute.
package SluiceArchiver;

use strict;
use warnings;
use HTTP::Tiny;
use Time::HiRes qw(time sleep);

sub new {
    my ($class, %arguments) = @_;
    my $url = $ENV{SLUICE_CHECK} or die "SLUICE_CHECK names no address to ask\n";
    my $http = HTTP::Tiny->new(timeout => 2, agent => 'SluiceArchiver');
    return bless { url => $url, http => $http, allowed => 0, told => 0 }, $class;
}

sub before_begin       { my ($self) = @_; $self->wait; return }
sub is_archivable      { return 1 }
sub before_delete      { my ($self) = @_; $self->wait if time - $self->{allowed} > 0.1; return }
sub before_bulk_delete { my ($self) = @_; $self->wait; return }
sub after_finish       { return }

# Asks until the answer is 200.
sub wait {
    my ($self) = @_;
    while (1) {
        my $status = $self->{http}->head($self->{url})->{status};
        last if $status == 200;
        $self->complain if $status == 599;
        sleep 0.25;
    }
    $self->{allowed} = time;
}

sub complain {
    my ($self) = @_;
    return if time - $self->{told} < 60;
    $self->{told} = time;
    warn "Nobody answers at $self->{url}: waiting\n";
}

1;
